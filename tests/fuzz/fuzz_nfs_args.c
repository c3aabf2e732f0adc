/* SPDX-License-Identifier: Apache-2.0
 *
 * The XDR arguments of each procedure of NFSv3 and MOUNT: the first byte chooses it, the rest is
 * what follows the call's header. What decodes, encodes and decodes to the same bytes again.
 */
#include "fuzz.h"
#include "svc_priv.h"

#define ENCODE_MAX (2u << 20)

typedef bool_t (*args_fn)(XDR *x, union nfs_args *a);

#define X(num, NAME, name, remembered, failure, errors)                                            \
    static bool_t args_##name(XDR *x, union nfs_args *a)                                           \
    {                                                                                              \
        return xdr_##NAME##3args(x, &a->name);                                                     \
    }
#include "procs.def"
#undef X

static bool_t args_mnt(XDR *x, union nfs_args *a)
{
    return xdr_MNT3args(x, &a->mnt);
}

static const args_fn nfs_args_of[NFS3_PROCS] = {
#define X(num, NAME, name, remembered, failure, errors) [num] = args_##name,
#include "procs.def"
#undef X
};

static size_t encode(args_fn fn, union nfs_args *a, uint8_t *out)
{
    XDR x;

    xdrmem_create(&x, (char *)out, ENCODE_MAX, XDR_ENCODE);
    FUZZ_CHECK(fn(&x, a));
    return xdr_getpos(&x);
}

static void check(args_fn fn, union nfs_args *a)
{
    static uint8_t once[ENCODE_MAX], twice[ENCODE_MAX];
    size_t n = encode(fn, a, once);
    union nfs_args again;
    XDR x;

    memset(&again, 0, sizeof(again));
    xdrmem_create(&x, (char *)once, (u_int)n, XDR_DECODE);
    FUZZ_CHECK(fn(&x, &again));
    FUZZ_CHECK(xdr_getpos(&x) == n);
    FUZZ_CHECK(encode(fn, &again, twice) == n && memcmp(once, twice, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct nfs_proc *proc;
    union nfs_args a;
    uint8_t *rec;
    unsigned nth;
    args_fn fn = NULL;
    XDR x;

    if (size == 0 || size > ENCODE_MAX / 2)
        return 0;
    nth = data[0] % (NFS3_PROCS + MOUNT3_PROCS);
    if (nth < NFS3_PROCS) {
        proc = &nfs3_procs[nth];
        fn = nfs_args_of[nth];
    } else {
        proc = &mount3_procs[nth - NFS3_PROCS];
        fn = nth - NFS3_PROCS == 1 || nth - NFS3_PROCS == 3 ? args_mnt : NULL;
    }
    rec = malloc(size); /* aligned, of its very size */
    if (!rec)
        abort();
    memcpy(rec, data + 1, size - 1);
    memset(&a, 0, sizeof(a));
    xdrmem_create(&x, (char *)rec, (u_int)(size - 1), XDR_DECODE);
    if (proc->decode(&x, &a)) {
        FUZZ_CHECK(xdr_getpos(&x) <= size - 1);
        if (fn)
            check(fn, &a);
    }
    free(rec);
    return 0;
}
