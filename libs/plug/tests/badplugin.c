/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins of other versions, for the loader's tests: another ABI major, a table that is too small,
 * no symbol at all, and an older one (OLD) whose table ends before space and list.
 */
#include <holdfast/backend.h>

#include <stddef.h>

const struct hf_backend_ops *hf_backend_plugin(void);
const struct hf_backend_ops *hf_other_symbol(void);

struct hf_be {
    int nothing;
};

static struct hf_be only;

static int bad_open(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes)
{
    (void)o;
    (void)err;
    (void)err_bytes;
    *ret = &only;
    return 0;
}

static void bad_close(struct hf_be *be)
{
    (void)be;
}

static void bad_submit(struct hf_be *be, struct hf_be_io *io)
{
    (void)be;
    io->status = HF_BE_ENOTSUPP;
    io->done(io);
}

static const struct hf_backend_ops ops = {
#if defined(BAD_SMALL)
    .struct_size = 8,
#elif defined(BAD_OLD)
    .struct_size = offsetof(struct hf_backend_ops, space),
#else
    .struct_size = sizeof(ops),
#endif
#if defined(BAD_MAJOR)
    .abi_major = HF_BE_ABI_MAJOR + 1,
#else
    .abi_major = HF_BE_ABI_MAJOR,
#endif
    .name = "bad",
    .open = bad_open,
    .close = bad_close,
    .submit = bad_submit,
};

#if defined(BAD_NOSYM)
const struct hf_backend_ops *hf_other_symbol(void)
#else
const struct hf_backend_ops *hf_backend_plugin(void)
#endif
{
    return &ops;
}
