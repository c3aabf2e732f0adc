/* SPDX-License-Identifier: Apache-2.0 */
#include "xdr_slice.h"

static bool_t xdr_slice(XDR *xdrs, struct hf_slice *s, uint32_t max)
{
    static const char pad[4];
    uint32_t len = (uint32_t)s->len;
    void *p;

    switch (xdrs->x_op) {
    case XDR_ENCODE:
        if (s->len > max || !xdr_u_int(xdrs, &len))
            return FALSE;
        if (len && !XDR_PUTBYTES(xdrs, s->data, len))
            return FALSE;
        return len % 4 == 0 || XDR_PUTBYTES(xdrs, pad, 4 - len % 4);
    case XDR_DECODE:
        if (!xdr_u_int(xdrs, &len) || len > max)
            return FALSE;
        /* max is far below 2^32, so rounding up cannot wrap; XDR_INLINE checks what is left. */
        p = XDR_INLINE(xdrs, (len + 3) & ~3u);
        if (!p)
            return FALSE;
        *s = hf_slice(p, len);
        return TRUE;
    case XDR_FREE:
        return TRUE;
    }
    return FALSE;
}

bool_t xdr_nfs_fh3(XDR *xdrs, nfs_fh3 *s)
{
    return xdr_slice(xdrs, s, NFS_FH_DECODE_MAX);
}

bool_t xdr_filename3(XDR *xdrs, filename3 *s)
{
    return xdr_slice(xdrs, s, NFS_NAME_DECODE_MAX);
}

bool_t xdr_nfspath3(XDR *xdrs, nfspath3 *s)
{
    return xdr_slice(xdrs, s, NFS_NAME_DECODE_MAX);
}

bool_t xdr_nfsdata3(XDR *xdrs, nfsdata3 *s)
{
    return xdr_slice(xdrs, s, NFS_DATA_DECODE_MAX);
}
