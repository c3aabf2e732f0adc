/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/err.h"

#include <errno.h>

const char *hf_err_name(int err)
{
    switch (err) {
    case HF_OK:
        return "OK";
#define X(name, number, text)                                                                      \
    case HF_E_##name:                                                                              \
        return #name;
#include "holdfast/err.def"
#undef X
    default:
        return "UNKNOWN";
    }
}

const char *hf_err_text(int err)
{
    switch (err) {
    case HF_OK:
        return "success";
#define X(name, number, text)                                                                      \
    case HF_E_##name:                                                                              \
        return text;
#include "holdfast/err.def"
#undef X
    default:
        return "unknown error";
    }
}

static const struct {
    int errno_value;
    int err;
} errno_table[] = {
    {EPERM, HF_E_PERM},           {ENOENT, HF_E_NOENT},       {EIO, HF_E_IO},
    {ENXIO, HF_E_NXIO},           {EACCES, HF_E_ACCES},       {EEXIST, HF_E_EXIST},
    {EXDEV, HF_E_XDEV},           {ENODEV, HF_E_NODEV},       {ENOTDIR, HF_E_NOTDIR},
    {EISDIR, HF_E_ISDIR},         {EINVAL, HF_E_INVAL},       {ENOTCONN, HF_E_CONNRESET},
    {EFBIG, HF_E_FBIG},           {EOVERFLOW, HF_E_FBIG},     {ENOSPC, HF_E_NOSPC},
    {EROFS, HF_E_ROFS},           {EMLINK, HF_E_MLINK},       {ENAMETOOLONG, HF_E_NAMETOOLONG},
    {ENOTEMPTY, HF_E_NOTEMPTY},   {EDQUOT, HF_E_DQUOT},       {ESTALE, HF_E_STALE},
    {EOPNOTSUPP, HF_E_NOTSUPP},   {ENOSYS, HF_E_NOTSUPP},     {ENOMEM, HF_E_NOMEM},
    {ETIMEDOUT, HF_E_TIMEDOUT},   {ECANCELED, HF_E_CANCELED}, {ECONNREFUSED, HF_E_CONNREFUSED},
    {ECONNRESET, HF_E_CONNRESET}, {EPIPE, HF_E_CONNRESET},    {EPROTO, HF_E_PROTO},
    {EMSGSIZE, HF_E_TOOBIG},      {EAGAIN, HF_E_BUSY},        {EBUSY, HF_E_BUSY},
    {EADDRINUSE, HF_E_ADDRINUSE}, {ENODATA, HF_E_NODATA},     {ERANGE, HF_E_RANGE},
    {ELOOP, HF_E_LOOP},           {EBADF, HF_E_BADF},         {E2BIG, HF_E_TOOBIG},
    {ESHUTDOWN, HF_E_CLOSED},
};

int hf_err_from_errno(int errno_value)
{
    if (errno_value == 0)
        return HF_OK;
    for (unsigned i = 0; i < sizeof(errno_table) / sizeof(errno_table[0]); i++)
        if (errno_table[i].errno_value == errno_value)
            return errno_table[i].err;
    return HF_E_IO;
}

/* What a program sees of errors that errno_table names otherwise or not at all. */
static const struct {
    int err;
    int errno_value;
} back_table[] = {
    {HF_E_NOTSUPP, EOPNOTSUPP},  {HF_E_FBIG, EFBIG},        {HF_E_TOOBIG, E2BIG},
    {HF_E_BUSY, EAGAIN},         {HF_E_JUKEBOX, ETIMEDOUT}, {HF_E_CONNRESET, ETIMEDOUT},
    {HF_E_CONNREFUSED, EIO},     {HF_E_BADHANDLE, ESTALE},  {HF_E_BADTYPE, EINVAL},
    {HF_E_TOOSMALL, EINVAL},     {HF_E_BAD_COOKIE, EINVAL}, {HF_E_NOT_SYNC, EAGAIN},
    {HF_E_NOTLEADER, ETIMEDOUT},
};

int hf_err_to_errno(int err)
{
    if (err == HF_OK)
        return 0;
    for (unsigned i = 0; i < sizeof(back_table) / sizeof(back_table[0]); i++)
        if (back_table[i].err == err)
            return back_table[i].errno_value;
    for (unsigned i = 0; i < sizeof(errno_table) / sizeof(errno_table[0]); i++)
        if (errno_table[i].err == err)
            return errno_table[i].errno_value;
    return EIO;
}
