/* SPDX-License-Identifier: Apache-2.0
 *
 * Extended attributes. A size of 0 asks how long the answer would be.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse_priv.h"

struct ask {
    fuse_req_t req;
    size_t size;
};

static void on_data(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    struct ask *a = arg;

    if (err)
        reply_err(a->req, err);
    else if (a->size == 0)
        (void)fuse_reply_xattr(a->req, n);
    else if (n > a->size)
        reply_err(a->req, -ERANGE);
    else
        (void)fuse_reply_iov(a->req, iov, (int)niov);
    free(a);
}

static struct ask *ask_new(fuse_req_t req, size_t size)
{
    struct ask *a = malloc(sizeof(*a));

    if (a)
        *a = (struct ask){req, size};
    else
        reply_err(req, -ENOMEM);
    return a;
}

/* `ls -l` asks for the label of each file, unless it hears once that there are none here. A label
 * that somebody has set all the same is found: its file is not known to have no attributes. */
static int no_attribute(const struct hf_fusesvc *s, const char *name)
{
    return !s->selinux && strcmp(name, "security.selinux") == 0 ? -EOPNOTSUPP : -ENODATA;
}

void op_getxattr(fuse_req_t req, fuse_ino_t id, const char *name, size_t size)
{
    struct hf_handle h;
    struct who w;
    struct ask *a;

    if (node_no_xattrs(svc_of(req), id)) {
        reply_err(req, no_attribute(svc_of(req), name));
        return;
    }
    if (object_of(req, id, &h) && (a = ask_new(req, size)) != NULL)
        hf_getxattr_async(svc_of(req)->fs, who_asks(req, &w), h, name, on_data, a);
}

void op_listxattr(fuse_req_t req, fuse_ino_t id, size_t size)
{
    struct hf_handle h;
    struct who w;
    struct ask *a;

    if (object_of(req, id, &h) && (a = ask_new(req, size)) != NULL)
        hf_listxattr_async(svc_of(req)->fs, who_asks(req, &w), h, on_data, a);
}

struct set {
    fuse_req_t req;
    struct request_buf *buf; /* has the value */
};

static void on_set(void *arg, int err)
{
    struct set *t = arg;

    request_buf_put(t->buf);
    reply_err(t->req, err);
    free(t);
}

void op_setxattr(fuse_req_t req, fuse_ino_t id, const char *name, const char *value, size_t size,
                 int flags)
{
    struct set *t = malloc(sizeof(*t));
    struct hf_handle h;
    struct who w;

    if (!t || !(t->buf = request_buf_take(svc_of(req)))) {
        free(t);
        reply_err(req, -ENOMEM);
        return;
    }
    t->req = req;
    if (!object_of(req, id, &h)) {
        request_buf_put(t->buf);
        free(t);
        return;
    }
    node_has_xattr(svc_of(req), id);
    hf_setxattr_async(svc_of(req)->fs, who_asks(req, &w), h, name, value, size, flags, on_set, t);
}

void op_removexattr(fuse_req_t req, fuse_ino_t id, const char *name)
{
    static const struct hf_user root = {0};
    /* The kernel lets nobody without the right remove these, and takes a program's capabilities
     * away itself, in the name of whoever writes to it. */
    bool kernel = strncmp(name, "security.", strlen("security.")) == 0;
    struct hf_handle h;
    struct who w;

    if (object_of(req, id, &h))
        hf_removexattr_async(svc_of(req)->fs, kernel ? &root : who_asks(req, &w), h, name,
                             reply_done, req);
}
