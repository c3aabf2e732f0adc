/* SPDX-License-Identifier: Apache-2.0
 *
 * MOUNT3, RFC 1813 appendix I. NULL is nfs3_null.
 */
#include <arpa/inet.h>

#include "svc_priv.h"

enum { FLAVOR_NONE = 0, FLAVOR_SYS = 1 };

static void host_of(const struct nfs_conn *c, char *buf, size_t bytes)
{
    const struct sockaddr_storage *a = &c->peer;
    const void *addr = a->ss_family == AF_INET6
                           ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
                           : (const void *)&((const struct sockaddr_in *)a)->sin_addr;

    if (!inet_ntop(a->ss_family, addr, buf, (socklen_t)bytes))
        buf[0] = '\0';
}

void mount3_mnt(struct nfs_req *r)
{
    struct hf_nfssvc *s = r->svc;
    const struct hf_slice path = r->a.mnt.dirpath;
    u_int flavors[] = {FLAVOR_SYS, FLAVOR_NONE};
    uint8_t fh[HF_VFS_FH_MAX];
    char host[48];
    MNT3res res;
    int rc = HF_E_NAMETOOLONG;

    if (path.len <= MNTPATHLEN)
        rc = hf_vfs_mount(s->vfs, path, (const struct sockaddr *)&r->conn->peer, &r->obj);
    host_of(r->conn, host, sizeof(host));
    memset(&res, 0, sizeof(res));
    res.status = nfs_status_mount3(rc);
    if (rc == 0) {
        res.MNT3res_u.resok.fhandle =
            hf_slice(fh, hf_vfs_fh_encode(s->vfs, &r->obj.exp, r->obj.ino, r->obj.gen, fh));
        res.MNT3res_u.resok.auth_flavors.auth_flavors_len = HF_ARRAY_LEN(flavors);
        res.MNT3res_u.resok.auth_flavors.auth_flavors_val = flavors;
        nfs_mounts_add(&s->mounts, host, path);
    } else {
        hf_metric_add(&s->m.mount_errors[r->proc_no], 1);
        hf_log(s->log, HF_INFO, "nfs", "mount of \"%.*s\" by %s refused: %s",
               (int)(path.len < 256 ? path.len : 256), (const char *)path.data, host,
               hf_err_name(rc));
    }
    nfs_reply_end(r, xdr_MNT3res(nfs_reply_begin(r), &res));
}

static bool put_bool(XDR *x, bool value)
{
    bool_t b = value;

    return xdr_bool(x, &b);
}

static bool put_bytes(XDR *x, struct hf_slice s)
{
    return xdr_nfspath3(x, &s);
}

/* Lists end early when the reply is full: better a part than nothing. */
static bool has_room(XDR *x, size_t more)
{
    return xdr_getpos(x) + more + 64 < NFS_MOUNT_MAX;
}

void mount3_dump(struct nfs_req *r)
{
    XDR *x = nfs_reply_begin(r);
    bool ok = true;

    HF_LIST_FOREACH(l, &r->svc->mounts.list)
    {
        const struct nfs_mount *m = hf_container_of(l, struct nfs_mount, link);

        if (!ok || !has_room(x, sizeof(m->host) + m->dir_len))
            break;
        ok = put_bool(x, true) && put_bytes(x, hf_slice_str(m->host)) &&
             put_bytes(x, hf_slice(m->dir, m->dir_len));
    }
    nfs_reply_end(r, ok && put_bool(x, false));
}

void mount3_umnt(struct nfs_req *r)
{
    char host[48];

    host_of(r->conn, host, sizeof(host));
    nfs_mounts_del(&r->svc->mounts, host, r->a.mnt.dirpath);
    (void)nfs_reply_begin(r);
    nfs_reply_end(r, true);
}

void mount3_umntall(struct nfs_req *r)
{
    char host[48];

    host_of(r->conn, host, sizeof(host));
    nfs_mounts_del(&r->svc->mounts, host, hf_slice(NULL, 0));
    (void)nfs_reply_begin(r);
    nfs_reply_end(r, true);
}

struct export_list {
    XDR *x;
    bool ok, full;
};

static void put_export(void *arg, const Hf__ExportEntry *e)
{
    struct export_list *l = arg;
    size_t bytes = strlen(e->path);

    for (size_t i = 0; i < e->n_clients; i++)
        bytes += strlen(e->clients[i]) + 12;
    l->full = l->full || !has_room(l->x, bytes);
    if (!l->ok || l->full)
        return;
    l->ok = put_bool(l->x, true) && put_bytes(l->x, hf_slice_str(e->path));
    for (size_t i = 0; i < e->n_clients && l->ok; i++)
        l->ok = put_bool(l->x, true) && put_bytes(l->x, hf_slice_str(e->clients[i]));
    l->ok = l->ok && put_bool(l->x, false);
}

void mount3_export(struct nfs_req *r)
{
    struct export_list l = {nfs_reply_begin(r), true, false};

    hf_vfs_exports(r->svc->vfs, put_export, &l);
    nfs_reply_end(r, l.ok && put_bool(l.x, false));
}
