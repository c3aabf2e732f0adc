/* SPDX-License-Identifier: Apache-2.0 */
#include "support_meta.h"

char name255[256], name256[257];

void tree_make(struct shard *s, struct tree *t)
{
    memset(name255, 'n', 255);
    memset(name256, 'n', 256);
    cr_ok(t_make(s, &t_root, t_root_dir, "d", DIR_, 0755, &t->d));
    cr_ok(t_chown(s, &t_root, t->d, 1001, 1001));
    cr_ok(t_create(s, &t_u1, t->d, "f", 0644, &t->f));
    cr_ok(t_symlink(s, &t_u1, t->d, "l", "target", &t->l));
    cr_ok(t_make(s, &t_u1, t->d, "sub", DIR_, 0755, &t->sub));
    cr_ok(t_create(s, &t_u1, t->sub, "x", 0644, &t->x));
    cr_ok(t_make(s, &t_root, t_root_dir, "closed", DIR_, 0700, &t->closed));
    cr_ok(t_make(s, &t_root, t_root_dir, "ro", DIR_, 0755, &t->ro));
    cr_ok(t_make(s, &t_root, t_root_dir, "sticky", DIR_, 01777, &t->sticky));
    cr_ok(t_create(s, &t_u1, t->sticky, "s1", 0666, &t->s1));
    cr_ok(t_create(s, &t_root, t->ro, "gone", 0644, &t->gone));
    cr_ok(t_remove(s, &t_root, t->ro, "gone", false));
    t->wrong = (struct fh){t->d.ino, t->d.gen + 1};
}
