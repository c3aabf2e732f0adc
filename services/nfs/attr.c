/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes between our wire messages and NFSv3. NFSv3 times are unsigned 32-bit seconds: what
 * lies before 1970 shows as 0 and what lies after February 2106 as the last representable instant,
 * never wrapped.
 */
#include "svc_priv.h"

nfstime3 nfs3_time(int64_t ns)
{
    int64_t sec = ns / (int64_t)HF_NS_PER_SEC;

    if (ns < 0)
        return (nfstime3){0, 0};
    if (sec > UINT32_MAX)
        return (nfstime3){UINT32_MAX, (uint32_t)HF_NS_PER_SEC - 1};
    return (nfstime3){(uint32_t)sec, (uint32_t)(ns % (int64_t)HF_NS_PER_SEC)};
}

void nfs3_fattr(const struct hf_nfssvc *s, const Hf__Attr *a, fattr3 *ret)
{
    *ret = (fattr3){
        .type = a->type,
        .mode = a->mode & 07777,
        .nlink = a->nlink,
        .uid = a->uid,
        .gid = a->gid,
        .size = a->size,
        .used = a->allocated,
        .rdev = {a->rdev_major, a->rdev_minor},
        .fsid = hf_vfs_fsid(s->vfs),
        .fileid = a->ino,
        .atime = nfs3_time(a->atime_ns),
        .mtime = nfs3_time(a->mtime_ns),
        .ctime = nfs3_time(a->ctime_ns),
    };
}

void nfs3_post_attr(const struct hf_nfssvc *s, const Hf__Attr *a, post_op_attr *ret)
{
    ret->attributes_follow = a != NULL;
    if (a)
        nfs3_fattr(s, a, &ret->post_op_attr_u.attributes);
}

void nfs3_wcc(const struct hf_nfssvc *s, const Hf__Wcc *w, wcc_data *ret)
{
    ret->before.attributes_follow = w && w->have_before;
    if (w && w->have_before)
        ret->before.pre_op_attr_u.attributes =
            (wcc_attr){w->size, nfs3_time(w->mtime_ns), nfs3_time(w->ctime_ns)};
    nfs3_post_attr(s, w ? w->after : NULL, &ret->after);
}

static int set_time(const set_time3 *t, uint32_t *ret_how, int64_t *ret_ns)
{
    switch (t->set_it) {
    case DONT_CHANGE:
        return 0;
    case SET_TO_SERVER_TIME:
        *ret_how = HF__SET_TIME__TIME_SERVER;
        return 0;
    case SET_TO_CLIENT_TIME:
        if (t->set_time3_u.time.nseconds >= HF_NS_PER_SEC)
            return HF_E_INVAL;
        *ret_how = HF__SET_TIME__TIME_CLIENT;
        *ret_ns = (int64_t)t->set_time3_u.time.seconds * (int64_t)HF_NS_PER_SEC +
                  t->set_time3_u.time.nseconds;
        return 0;
    }
    return HF_E_INVAL;
}

int nfs3_sattr(const sattr3 *a, Hf__SetAttrs *ret)
{
    int rc;

    hf__set_attrs__init(ret);
    if (a->mode.set_it) {
        ret->set_mode = true;
        ret->mode = a->mode.set_uint3_u.value & 07777;
    }
    if (a->uid.set_it) {
        ret->set_uid = true;
        ret->uid = a->uid.set_uint3_u.value;
    }
    if (a->gid.set_it) {
        ret->set_gid = true;
        ret->gid = a->gid.set_uint3_u.value;
    }
    if (a->size.set_it) {
        ret->set_size = true;
        ret->size = a->size.set_size3_u.size;
    }
    rc = set_time(&a->atime, &ret->set_atime, &ret->atime_ns);
    if (rc == 0)
        rc = set_time(&a->mtime, &ret->set_mtime, &ret->mtime_ns);
    return rc;
}

void nfs3_post_fh(struct nfs_req *r, const Hf__Attr *a, uint8_t *buf, post_op_fh3 *ret)
{
    ret->handle_follows = a != NULL;
    if (a)
        ret->post_op_fh3_u.handle =
            hf_slice(buf, hf_vfs_fh_encode(r->svc->vfs, &r->obj.exp, a->ino, a->gen, buf));
}
