/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include <stdio.h>
#include <stdlib.h>

static struct nfs_mount *mount_of(struct hf_list *l)
{
    return hf_container_of(l, struct nfs_mount, link);
}

void nfs_mounts_init(struct nfs_mounts *m)
{
    hf_list_init(&m->list);
    m->n = 0;
}

static void mount_free(struct nfs_mounts *m, struct nfs_mount *e)
{
    hf_list_remove(&e->link);
    m->n--;
    free(e);
}

void nfs_mounts_fini(struct nfs_mounts *m)
{
    struct hf_list *l;

    while ((l = hf_list_pop_front(&m->list)) != NULL)
        free(mount_of(l));
    m->n = 0;
}

static bool is(const struct nfs_mount *e, const char *host, struct hf_slice dir)
{
    return strcmp(e->host, host) == 0 && hf_slice_eq(hf_slice(e->dir, e->dir_len), dir);
}

void nfs_mounts_add(struct nfs_mounts *m, const char *host, struct hf_slice dir)
{
    struct nfs_mount *e;

    if (dir.len > NFS_MOUNTS_DIRLEN)
        return;
    HF_LIST_FOREACH(it, &m->list)
    {
        if (is(mount_of(it), host, dir)) {
            hf_list_remove(it);
            hf_list_push_back(&m->list, it);
            return;
        }
    }
    e = malloc(sizeof(*e) + dir.len);
    if (!e)
        return;
    (void)snprintf(e->host, sizeof(e->host), "%s", host);
    e->dir_len = dir.len;
    if (dir.len)
        memcpy(e->dir, dir.data, dir.len);
    hf_list_push_back(&m->list, &e->link);
    if (++m->n > NFS_MOUNTS_MAX)
        mount_free(m, mount_of(m->list.next));
}

void nfs_mounts_del(struct nfs_mounts *m, const char *host, struct hf_slice dir)
{
    HF_LIST_FOREACH_SAFE(it, tmp, &m->list)
    {
        struct nfs_mount *e = mount_of(it);

        if (dir.data ? is(e, host, dir) : strcmp(e->host, host) == 0)
            mount_free(m, e);
    }
}
