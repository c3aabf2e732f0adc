/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_STORE_LMDB_CHECK_H
#define HF_STORE_LMDB_CHECK_H

#include <lmdb.h>

/* CORRUPT if a page in use lies beyond the end of the file. Right after mdb_env_open. */
int store_lmdb_check_size(MDB_env *env);

#endif
