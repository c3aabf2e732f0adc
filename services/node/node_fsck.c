/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-node --fsck: the check of a file system that is not running. Shards are opened as at
 * every start (checkpoint and log), then checked the way a running node does it.
 */
#include <inttypes.h>

#include "holdfast/err.h"
#include "node_priv.h"

struct printer {
    struct hf_buf *out;
    bool json;
    bool first;
};

/* Names are bytes: anything but printable ASCII is escaped, in a way that is also a JSON string. */
static void put_escaped(struct hf_buf *out, const uint8_t *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"' || s[i] == '\\')
            (void)hf_buf_printf(out, "\\%c", s[i]);
        else if (s[i] < 0x20 || s[i] > 0x7e)
            (void)hf_buf_printf(out, "\\u%04x", s[i]);
        else
            (void)hf_buf_append(out, &s[i], 1);
    }
}

static void on_finding(void *arg, const Hf__FsckFinding *f)
{
    struct printer *p = arg;

    if (p->json) {
        (void)hf_buf_printf(p->out, "%s{\"kind\":\"%s\",\"ino\":%" PRIu64 ",\"name\":\"",
                            p->first ? "" : ",", f->kind, f->ino);
        put_escaped(p->out, f->name.data, f->name.len);
        (void)hf_buf_printf(p->out, "\",\"detail\":\"");
        put_escaped(p->out, (const uint8_t *)f->detail, strlen(f->detail));
        (void)hf_buf_printf(p->out, "\"}");
    } else {
        (void)hf_buf_printf(p->out, "%-18s inode %" PRIu64 " \"", f->kind, f->ino);
        put_escaped(p->out, f->name.data, f->name.len);
        (void)hf_buf_printf(p->out, "\": %s\n", f->detail);
    }
    p->first = false;
}

int hf_node_fsck(struct hf_node *n, struct hf_buf *out)
{
    struct printer p = {.out = out, .json = n->json, .first = true};
    Hf__FsckRep rep;
    char err[512] = "";
    int rc;

    if (p.json)
        (void)hf_buf_printf(out, "{\"findings\":[");
    rc = hf_metasvc_fsck(n->meta, true, on_finding, &p, &rep, err, sizeof(err));
    if (rc) {
        hf_buf_reset(out);
        (void)hf_buf_printf(out, "holdfast-node: fsck: %s\n", err);
        return rc;
    }
    if (p.json)
        (void)hf_buf_printf(out,
                            "],\"inodes\":%" PRIu64 ",\"names\":%" PRIu64 ",\"chunks\":%" PRIu64
                            ",\"bytes\":%" PRIu64 ",\"problems\":%" PRIu64 "}\n",
                            rep.inodes, rep.dentries, rep.chunks, rep.bytes, rep.problems);
    else
        (void)hf_buf_printf(out,
                            "%" PRIu64 " inodes, %" PRIu64 " names, %" PRIu64 " chunks, %" PRIu64
                            " bytes: %" PRIu64 " problems\n",
                            rep.inodes, rep.dentries, rep.chunks, rep.bytes, rep.problems);
    return rep.problems > INT32_MAX ? INT32_MAX : (int)rep.problems;
}
