/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may do what: POSIX owner, group and other bits, or the ACL that has taken the group's place
 * (acl.c); uid 0 is the superuser.
 */
#include "acl.h"

bool hf_cred_is_root(const Hf__Cred *c)
{
    return c && c->uid == 0;
}

bool hf_cred_owns(const Hf__Cred *c, const struct hf_inode *i)
{
    return c && (c->uid == 0 || c->uid == i->uid);
}

bool hf_cred_in_group(const Hf__Cred *c, uint32_t gid)
{
    if (!c)
        return false;
    if (c->gid == gid)
        return true;
    for (size_t k = 0; k < c->n_groups; k++)
        if (c->groups[k] == gid)
            return true;
    return false;
}

int hf_may(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, unsigned bits)
{
    unsigned granted;

    if (!c)
        return HF_E_ACCES;
    if (c->uid == 0)
        granted = HF_R | HF_W | (i->type == HF__FILE_TYPE__FT_DIR || (i->mode & 0111) ? HF_X : 0u);
    else if (c->uid == i->uid)
        granted = i->mode >> 6 & 7u;
    else if (i->flags & HF_INO_ACL)
        return hf_acl_may(m, i, c, bits);
    else if (hf_cred_in_group(c, i->gid))
        granted = i->mode >> 3 & 7u;
    else
        granted = i->mode & 7u;
    return (granted & bits) == bits ? 0 : HF_E_ACCES;
}

/* RFC 1813 4.4: a server without opens must let the owner read and write whatever the mode says
 * now, since he may have opened the file before; and must let a program be read that may only be
 * executed. */
int hf_may_data(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, unsigned bits,
                bool owner_override)
{
    if (owner_override && c && c->uid == i->uid)
        return 0;
    if (owner_override && bits == HF_R && hf_may(m, i, c, HF_X) == 0)
        return 0;
    return hf_may(m, i, c, bits);
}

int hf_may_remove(struct hf_meta *m, const struct hf_inode *dir, const struct hf_inode *victim,
                  const Hf__Cred *c)
{
    int r = hf_may(m, dir, c, HF_W | HF_X);

    if (r)
        return r;
    if ((dir->mode & 01000) && !hf_cred_owns(c, dir) && !hf_cred_owns(c, victim))
        return HF_E_PERM;
    return 0;
}

int hf_kill_suid(struct hf_meta *m, struct hf_inode *i, const Hf__Cred *c)
{
    if (!hf_cred_is_root(c)) {
        i->mode = (uint16_t)(i->mode & ~04000u);
        if (i->mode & 0010)
            i->mode = (uint16_t)(i->mode & ~02000u);
    }
    return i->flags & HF_INO_CAPABILITY ? hf_xat_del_capability(m, i) : 0;
}
