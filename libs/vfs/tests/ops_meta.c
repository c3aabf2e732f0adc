/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operation of the vfs once or twice, through the real client, on the real namespace library.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/vfs.h"
#include "support_world.h"

/* One request and what is kept of its reply. */
struct ask {
    struct hf_vfs_req r;
    unsigned done;
    struct hf_vfs_obj obj; /* lookup, create, make: what was found or made */
    Hf__Attr attr;
    bool have_attr, created;
    uint32_t granted;
    char text[4096]; /* target, names, data */
    size_t len;
};

struct bed {
    struct world w;
    struct hf_client *c;
    struct hf_vfs *v;
    struct hf_vfs_obj root;
    struct ask a;
};

static bool ready(void *arg)
{
    struct bed *b = arg;
    const Hf__MapGetRep *map = hf_client_map(b->c);

    if (map && !hf_vfs_ready(b->v) && b->a.done == 0) {
        hf_vfs_map_changed(b->v, map);
        b->a.done = 1;
    }
    return hf_vfs_ready(b->v);
}

static void bed_init(struct bed *b)
{
    memset(b, 0, sizeof(*b));
    world_init(&b->w, 1);
    b->c = world_client(&b->w, NULL);
    cr_assert_eq(hf_vfs_new(b->w.loop, b->c, &b->v), 0);
    cr_assert(world_until(&b->w, ready, b, 10000));
    cr_assert_eq(hf_vfs_mount(b->v, hf_slice_str("/main"), NULL, &b->root), 0);
}

static void bed_fini(struct bed *b)
{
    hf_client_free(b->c);
    hf_vfs_free(b->v);
    world_fini(&b->w);
}

static void keep_attr(struct ask *a, const Hf__Attr *attr)
{
    if (!attr)
        return;
    a->attr = *attr;
    a->have_attr = true;
    a->obj.ino = attr->ino;
    a->obj.gen = attr->gen;
}

static void keep_readdir(struct ask *a, const Hf__ReaddirRep *rep)
{
    for (size_t i = 0; i < rep->n_entries; i++)
        a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len, "%.*s ",
                                   (int)rep->entries[i]->name.len,
                                   (const char *)rep->entries[i]->name.data);
}

static void keep_io(struct ask *a, const struct hf_client_io *io)
{
    keep_attr(a, io->attr ? io->attr : io->wcc ? io->wcc->after : NULL);
    for (unsigned i = 0; i < io->npieces; i++) {
        cr_assert_leq(a->len + io->pieces[i].data.len, sizeof(a->text));
        if (io->pieces[i].data.data)
            memcpy(a->text + a->len, io->pieces[i].data.data, io->pieces[i].data.len);
        else
            memset(a->text + a->len, 0, io->pieces[i].data.len);
        a->len += io->pieces[i].data.len;
    }
}

static void on_done(struct hf_vfs_req *r)
{
    struct ask *a = hf_container_of(r, struct ask, r);
    const ProtobufCMessage *m = r->rep;
    const ProtobufCMessageDescriptor *d = m ? m->descriptor : NULL;

    a->done++;
    if (r->io)
        keep_io(a, r->io);
    if (d == &hf__getattr_rep__descriptor)
        keep_attr(a, ((const Hf__GetattrRep *)m)->obj);
    if (d == &hf__lookup_rep__descriptor)
        keep_attr(a, ((const Hf__LookupRep *)m)->obj);
    if (d == &hf__setattr_rep__descriptor && ((const Hf__SetattrRep *)m)->obj)
        keep_attr(a, ((const Hf__SetattrRep *)m)->obj->after);
    if (d == &hf__make_rep__descriptor)
        keep_attr(a, ((const Hf__MakeRep *)m)->obj);
    if (d == &hf__link_rep__descriptor)
        keep_attr(a, ((const Hf__LinkRep *)m)->obj);
    if (d == &hf__create_rep__descriptor) {
        keep_attr(a, ((const Hf__CreateRep *)m)->obj);
        a->created = ((const Hf__CreateRep *)m)->created;
    }
    if (d == &hf__access_rep__descriptor)
        a->granted = ((const Hf__AccessRep *)m)->granted;
    if (d == &hf__readlink_rep__descriptor) {
        const ProtobufCBinaryData *t = &((const Hf__ReadlinkRep *)m)->target;

        memcpy(a->text, t->data, t->len);
        a->len = t->len;
    }
    if (d == &hf__readdir_rep__descriptor)
        keep_readdir(a, (const Hf__ReaddirRep *)m);
}

static bool asked(void *arg)
{
    return ((struct ask *)arg)->done > 0;
}

static struct hf_vfs_req *ask(struct bed *b)
{
    memset(&b->a, 0, sizeof(b->a));
    b->a.r.done = on_done;
    b->a.obj.exp = b->root.exp;
    return &b->a.r;
}

static void answer(struct bed *b, int status)
{
    cr_assert(world_until(&b->w, asked, &b->a, 60000));
    cr_assert_eq(b->a.done, 1);
    cr_assert_eq(b->a.r.status, status, "%s", hf_err_name(b->a.r.status));
}

static struct hf_vfs_obj make(struct bed *b, const struct hf_vfs_obj *dir, const char *name,
                              uint32_t type, const char *target)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;

    set.set_mode = true;
    set.mode = 0755;
    hf_vfs_make(b->v, ask(b), dir, hf_slice_str(name), type, &set, hf_slice_str(target), 3, 4);
    answer(b, 0);
    cr_assert(b->a.have_attr);
    return b->a.obj;
}

static struct hf_vfs_obj create(struct bed *b, const struct hf_vfs_obj *dir, const char *name)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;

    set.set_mode = true;
    set.mode = 0640;
    hf_vfs_create(b->v, ask(b), dir, hf_slice_str(name), HF__CREATE_HOW__CREATE_GUARDED, &set, 0);
    answer(b, 0);
    cr_assert(b->a.created);
    return b->a.obj;
}

Test(ops, names)
{
    struct bed *b = malloc(sizeof(*b));
    struct hf_vfs_obj d, f, l;

    bed_init(b);
    d = make(b, &b->root, "dir", HF__FILE_TYPE__FT_DIR, "");
    f = create(b, &d, "file");
    l = make(b, &d, "link", HF__FILE_TYPE__FT_LNK, "over/there");
    make(b, &d, "pipe", HF__FILE_TYPE__FT_FIFO, "");
    make(b, &d, "disk", HF__FILE_TYPE__FT_BLK, "");
    cr_assert_eq(b->a.attr.rdev_major, 3);
    cr_assert_eq(b->a.attr.rdev_minor, 4);

    hf_vfs_readlink(b->v, ask(b), &l);
    answer(b, 0);
    cr_assert_eq(b->a.len, 10);
    cr_assert_eq(memcmp(b->a.text, "over/there", 10), 0);

    hf_vfs_lookup(b->v, ask(b), &d, hf_slice_str("file"));
    answer(b, 0);
    cr_assert_eq(b->a.obj.ino, f.ino);
    hf_vfs_lookup(b->v, ask(b), &d, hf_slice_str(".."));
    answer(b, 0);
    cr_assert_eq(b->a.obj.ino, b->root.ino);
    hf_vfs_lookup(b->v, ask(b), &b->root, hf_slice_str(".."));
    answer(b, 0);
    cr_assert_eq(b->a.obj.ino, b->root.ino);
    hf_vfs_lookup(b->v, ask(b), &d, hf_slice_str("nothing"));
    answer(b, HF_E_NOENT);

    hf_vfs_link(b->v, ask(b), &f, &b->root, hf_slice_str("second"));
    answer(b, 0);
    cr_assert_eq(b->a.attr.nlink, 2);
    hf_vfs_rename(b->v, ask(b), &d, hf_slice_str("file"), &b->root, hf_slice_str("moved"));
    answer(b, 0);
    hf_vfs_lookup(b->v, ask(b), &b->root, hf_slice_str("moved"));
    answer(b, 0);
    cr_assert_eq(b->a.obj.ino, f.ino);
    hf_vfs_remove(b->v, ask(b), &b->root, hf_slice_str("second"), false);
    answer(b, 0);
    hf_vfs_remove(b->v, ask(b), &b->root, hf_slice_str("dir"), true);
    answer(b, HF_E_NOTEMPTY);

    hf_vfs_readdir(b->v, ask(b), &b->root, 0, 65536, 24, 1000, true);
    answer(b, 0);
    cr_assert(strstr(b->a.text, "dir "));
    cr_assert(strstr(b->a.text, "moved "));
    cr_assert_not(strstr(b->a.text, "second "));
    cr_assert_eq(strncmp(b->a.text, ". .. ", 5), 0);
    bed_fini(b);
    free(b);
}

Test(ops, attributes_and_access)
{
    struct bed *b = malloc(sizeof(*b));
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    struct hf_vfs_obj f;

    bed_init(b);
    f = create(b, &b->root, "file");
    set.set_mode = set.set_uid = set.set_gid = true;
    set.mode = 0640;
    set.uid = 1000;
    set.gid = 100;
    hf_vfs_setattr(b->v, ask(b), &f, &set, false, 0);
    answer(b, 0);
    cr_assert_eq(b->a.attr.uid, 1000);
    hf_vfs_setattr(b->v, ask(b), &f, &set, true, 12345);
    answer(b, HF_E_NOT_SYNC);
    hf_vfs_getattr(b->v, ask(b), &f);
    answer(b, 0);
    cr_assert_eq(b->a.attr.mode, 0640);
    ask(b)->cred = (struct hf_vfs_cred){.uid = 7, .gid = 7, .ngroups = 1, .groups = {100}};
    hf_vfs_access(b->v, &b->a.r, &f, 0x3f);
    answer(b, 0);
    cr_assert_eq(b->a.granted, 0x01); /* by a supplementary group */
    ask(b)->cred = (struct hf_vfs_cred){.uid = 7, .gid = 7};
    hf_vfs_access(b->v, &b->a.r, &f, 0x3f);
    answer(b, 0);
    cr_assert_eq(b->a.granted, 0);
    f.gen++;
    hf_vfs_getattr(b->v, ask(b), &f);
    answer(b, HF_E_STALE);
    hf_vfs_fsstat(b->v, ask(b), &b->root);
    answer(b, 0);
    cr_assert_gt(b->a.r.space.total_files, 0);
    cr_assert_gt(b->a.r.space.free_files, 0);
    cr_assert_eq(b->a.r.space.total_bytes, 2001);
    cr_assert_eq(b->a.r.space.free_bytes, 200);
    bed_fini(b);
    free(b);
}

Test(ops, data)
{
    struct bed *b = malloc(sizeof(*b));
    struct hf_slice data[2] = {{"hello ", 6}, {"world", 5}};
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    struct hf_vfs_obj f;
    uint64_t verifier;

    bed_init(b);
    f = create(b, &b->root, "file");
    hf_vfs_write(b->v, ask(b), &f, 0, data, 2, HF__STABLE__UNSTABLE);
    answer(b, 0);
    cr_assert_eq(b->a.r.io->count, 11);
    cr_assert_eq(b->a.attr.size, 11);
    verifier = b->a.r.io->verifier;
    hf_vfs_commit(b->v, ask(b), &f, 0, 0);
    answer(b, 0);
    cr_assert_eq(b->a.r.io->verifier, verifier);
    hf_vfs_write(b->v, ask(b), &f, W_CHUNK - 5, data, 2, HF__STABLE__FILE_SYNC);
    answer(b, 0);
    cr_assert_eq(b->a.r.io->verifier, verifier);
    hf_vfs_read(b->v, ask(b), &f, W_CHUNK - 5, 100);
    answer(b, 0);
    cr_assert_eq(b->a.r.io->count, 11);
    cr_assert(b->a.r.io->eof);
    cr_assert_eq(memcmp(b->a.text, "hello world", 11), 0);
    hf_vfs_read(b->v, ask(b), &f, 0, 20);
    answer(b, 0);
    cr_assert_eq(memcmp(b->a.text, "hello world\0\0\0\0\0\0\0\0\0", 20), 0);
    set.set_size = true;
    set.size = 4;
    hf_vfs_setattr(b->v, ask(b), &f, &set, false, 0);
    answer(b, 0);
    set.size = 10;
    hf_vfs_setattr(b->v, ask(b), &f, &set, false, 0);
    answer(b, 0);
    hf_vfs_read(b->v, ask(b), &f, 0, 100);
    answer(b, 0);
    cr_assert_eq(b->a.len, 10);
    cr_assert_eq(memcmp(b->a.text, "hell\0\0\0\0\0\0", 10), 0);
    /* UNCHECKED with a size truncates what exists. */
    set.size = 0;
    hf_vfs_create(b->v, ask(b), &b->root, hf_slice_str("file"), HF__CREATE_HOW__CREATE_UNCHECKED,
                  &set, 0);
    answer(b, 0);
    cr_assert_not(b->a.created);
    cr_assert_eq(b->a.attr.size, 0);
    set.size = 20;
    hf_vfs_setattr(b->v, ask(b), &f, &set, false, 0);
    answer(b, 0);
    hf_vfs_read(b->v, ask(b), &f, 0, 100);
    answer(b, 0);
    cr_assert_eq(b->a.len, 20);
    for (unsigned i = 0; i < 20; i++)
        cr_assert_eq(b->a.text[i], 0);
    bed_fini(b);
    free(b);
}
