/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_PLUG_SUPPORT_DIR_H
#define HF_PLUG_SUPPORT_DIR_H

#include <stddef.h>

/* A fresh folder below TMPDIR; buf gets its path. */
void support_dir_make(char *buf, size_t bytes);
void support_dir_remove(const char *path);

#endif
