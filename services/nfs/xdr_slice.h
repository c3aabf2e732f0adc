/* SPDX-License-Identifier: Apache-2.0
 *
 * Variable-length opaques of the protocols as slices. Decoding points into the record (which lives
 * as long as the request), so it neither allocates nor copies and needs no xdr_free; encoding
 * copies the bytes. Lengths are checked against the type's bound and against what is left of the
 * record before anything else. Streams must be xdrmem over 4-byte aligned memory.
 */
#ifndef HF_NFS_XDR_SLICE_H
#define HF_NFS_XDR_SLICE_H

#include <rpc/rpc.h>
#include <stdint.h>

#include "holdfast/buf.h"

typedef struct hf_slice nfs_fh3;   /* at most 64 bytes */
typedef struct hf_slice filename3; /* bounded by NFS_NAME_DECODE_MAX: a longer name than the file
                                    * system takes gets NAMETOOLONG there, not GARBAGE_ARGS here */
typedef struct hf_slice nfspath3;  /* the same */
typedef struct hf_slice nfsdata3;  /* bounded by the record */

#define NFS_FH_DECODE_MAX   64u
#define NFS_NAME_DECODE_MAX (64u << 10)
#define NFS_DATA_DECODE_MAX (2u << 20)

bool_t xdr_nfs_fh3(XDR *xdrs, nfs_fh3 *s);
bool_t xdr_filename3(XDR *xdrs, filename3 *s);
bool_t xdr_nfspath3(XDR *xdrs, nfspath3 *s);
bool_t xdr_nfsdata3(XDR *xdrs, nfsdata3 *s);

#endif
