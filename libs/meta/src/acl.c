/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX access control lists (POSIX.1e draft 17, acl(5)).
 *
 * An ACL travels and is stored as the kernel writes it into an extended attribute: a version (2)
 * and entries of tag, permissions and id, little-endian, in this order: the owner, named users, the
 * owning group, named groups, the mask, others. An access ACL without a mask has three entries that
 * say the same as the mode; it is not stored. In one that is stored the entries of the owner, the
 * mask and others are not looked at: the mode has these bits and is what chmod changes. So chmod
 * needs no ACL, and the two cannot disagree.
 */
#include "acl.h"

#include "holdfast/endian.h"

#define VERSION     2u
#define HEAD_BYTES  4u
#define ENTRY_BYTES 8u
#define ID_NONE     UINT32_MAX

enum tag {
    TAG_USER_OBJ = 0x01,
    TAG_USER = 0x02,
    TAG_GROUP_OBJ = 0x04,
    TAG_GROUP = 0x08,
    TAG_MASK = 0x10,
    TAG_OTHER = 0x20,
};

struct entry {
    uint16_t tag, perm;
    uint32_t id;
};

static size_t entries(struct hf_slice blob)
{
    return blob.len < HEAD_BYTES ? 0 : (blob.len - HEAD_BYTES) / ENTRY_BYTES;
}

static struct entry entry_at(struct hf_slice blob, size_t k)
{
    const uint8_t *p = (const uint8_t *)blob.data + HEAD_BYTES + k * ENTRY_BYTES;

    return (struct entry){hf_get_le16(p), hf_get_le16(p + 2), hf_get_le32(p + 4)};
}

static bool named(uint16_t tag)
{
    return tag == TAG_USER || tag == TAG_GROUP;
}

/* What may follow what: tags rise, and only named ones come more than once. The bits of the tags
 * are in the right order. */
static bool follows(uint16_t before, uint16_t tag)
{
    return tag > before || (tag == before && named(tag));
}

static bool known(uint16_t tag)
{
    return tag != 0 && tag <= TAG_OTHER && (tag & (tag - 1)) == 0;
}

/* One entry into what is known of the whole. */
static void note(struct hf_acl *a, struct entry e)
{
    switch (e.tag) {
    case TAG_USER_OBJ:
        a->user = e.perm;
        break;
    case TAG_GROUP_OBJ:
        a->group = e.perm;
        break;
    case TAG_MASK:
        a->mask = e.perm;
        a->has_mask = true;
        break;
    case TAG_OTHER:
        a->other = e.perm;
        break;
    default:
        break;
    }
}

/* Everything but duplicates, which a stored ACL does not have. */
static int scan(struct hf_slice blob, struct hf_acl *ret)
{
    unsigned seen = 0;
    uint16_t before = 0;
    size_t n = entries(blob);

    *ret = (struct hf_acl){.blob = blob};
    if (blob.len == 0)
        return 0;
    if (blob.len < HEAD_BYTES || (blob.len - HEAD_BYTES) % ENTRY_BYTES ||
        hf_get_le32(blob.data) != VERSION || n > HF_ACL_ENTRIES_MAX)
        return HF_E_INVAL;
    if (n == 0) {
        ret->blob.len = 0;
        return 0;
    }
    for (size_t k = 0; k < n; k++) {
        struct entry e = entry_at(blob, k);

        if (!known(e.tag) || !follows(before, e.tag) || e.perm > 7 ||
            (named(e.tag) && e.id == ID_NONE))
            return HF_E_INVAL;
        note(ret, e);
        seen |= e.tag;
        before = e.tag;
    }
    if ((seen & TAG_USER_OBJ) == 0 || (seen & TAG_GROUP_OBJ) == 0 || (seen & TAG_OTHER) == 0)
        return HF_E_INVAL;
    return (seen & (TAG_USER | TAG_GROUP)) && !ret->has_mask ? HF_E_INVAL : 0;
}

/* Nobody is named twice: at most 512 entries against each other. */
static bool has_duplicates(struct hf_slice blob)
{
    size_t n = entries(blob);

    for (size_t k = 0; k < n; k++) {
        struct entry e = entry_at(blob, k);

        for (size_t j = k + 1; named(e.tag) && j < n; j++) {
            struct entry f = entry_at(blob, j);

            if (f.tag != e.tag)
                break;
            if (f.id == e.id)
                return true;
        }
    }
    return false;
}

int hf_acl_parse(struct hf_slice blob, struct hf_acl *ret)
{
    int r = scan(blob, ret);

    return r == 0 && has_duplicates(ret->blob) ? HF_E_INVAL : r;
}

void hf_acl_normalize(uint8_t *blob, size_t len)
{
    for (size_t k = 0; k < entries(hf_slice(blob, len)); k++) {
        uint8_t *p = blob + HEAD_BYTES + k * ENTRY_BYTES;

        if (!named(hf_get_le16(p)))
            hf_put_le32(p + 4, ID_NONE);
    }
}

unsigned hf_acl_mode(const struct hf_acl *a)
{
    return a->user << 6 | (a->has_mask ? a->mask : a->group) << 3 | a->other;
}

void hf_acl_set_mode(uint8_t *blob, size_t len, unsigned mode)
{
    for (size_t k = 0; k < entries(hf_slice(blob, len)); k++) {
        uint8_t *p = blob + HEAD_BYTES + k * ENTRY_BYTES;
        uint16_t tag = hf_get_le16(p);

        if (tag == TAG_USER_OBJ)
            hf_put_le16(p + 2, mode >> 6 & 7u);
        else if (tag == TAG_MASK)
            hf_put_le16(p + 2, mode >> 3 & 7u);
        else if (tag == TAG_OTHER)
            hf_put_le16(p + 2, mode & 7u);
    }
}

/* ---- the rule ---- */

/* The row of an ACL that the inode's flags promise. */
static int load(struct hf_meta *m, const struct hf_inode *i, const char *name, struct hf_acl *ret)
{
    struct hf_xat_row row;
    struct hf_slice blob;
    int r = hf_xat_find(m, i, HF_XAT_SYSTEM, hf_slice_str(name), &row, &blob);

    if (r)
        return r;
    return row.found && scan(blob, ret) == 0 && ret->blob.len ? 0 : HF_E_CORRUPT;
}

/* The first user entry that names the caller decides. Else any entry of his groups that has all the
 * bits will do; others' bits are for who is in none of the groups. */
int hf_acl_may(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, unsigned bits)
{
    unsigned mask = i->mode >> 3 & 7u, granted = i->mode & 7u;
    struct hf_acl a;
    bool in_group = false, enough = false;
    int r = load(m, i, HF_XAT_ACL_ACCESS, &a);

    if (r)
        return r;
    for (size_t k = 0; k < entries(a.blob) && !enough; k++) {
        struct entry e = entry_at(a.blob, k);

        if (e.tag == TAG_USER && e.id == c->uid)
            return (e.perm & mask & bits) == bits ? 0 : HF_E_ACCES;
        if ((e.tag == TAG_GROUP_OBJ && hf_cred_in_group(c, i->gid)) ||
            (e.tag == TAG_GROUP && hf_cred_in_group(c, e.id))) {
            in_group = true;
            enough = (e.perm & mask & bits) == bits;
        }
    }
    if (in_group)
        return enough ? 0 : HF_E_ACCES;
    return (granted & bits) == bits ? 0 : HF_E_ACCES;
}

/* ---- inheritance ---- */

int hf_inherit_prepare(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *dir,
                       struct hf_inode *i, uint32_t umask, struct hf_inherit *h)
{
    struct hf_acl a;
    int r;

    *h = (struct hf_inherit){.access = false};
    if (!(dir->flags & HF_INO_DEFAULT_ACL)) {
        i->mode = (uint16_t)(i->mode & ~(umask & 0777u));
        return 0;
    }
    r = load(m, dir, HF_XAT_ACL_DEFAULT, &a);
    if (r)
        return r;
    i->mode = (uint16_t)(i->mode & (07000u | hf_acl_mode(&a)));
    h->access = a.has_mask;
    h->dflt = i->type == HF__FILE_TYPE__FT_DIR;
    if (h->access)
        r = hf_xat_prepare_new(op, hf_slice_str(HF_XAT_ACL_ACCESS), a.blob, &h->access_row);
    if (r == 0 && h->dflt)
        r = hf_xat_prepare_new(op, hf_slice_str(HF_XAT_ACL_DEFAULT), a.blob, &h->dflt_row);
    return r;
}

int hf_inherit_put(struct hf_meta *m, struct hf_inode *i, struct hf_inherit *h)
{
    int r = 0;

    if (h->access)
        r = hf_xat_put_new(m, i, HF_XAT_SYSTEM, hf_slice_str(HF_XAT_ACL_ACCESS), &h->access_row);
    if (r == 0 && h->dflt)
        r = hf_xat_put_new(m, i, HF_XAT_SYSTEM, hf_slice_str(HF_XAT_ACL_DEFAULT), &h->dflt_row);
    return r;
}
