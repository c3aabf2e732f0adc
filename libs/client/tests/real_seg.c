/* SPDX-License-Identifier: Apache-2.0
 *
 * The segment servers of support_seg.h by the real segment service, on the backend in memory.
 */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/svc_segment.h"
#include "support_seg.h"

struct real {
    struct hf_segsvc *svc;
    char dir[64];
};

void seg_server_init(struct world *w, unsigned index)
{
    struct real *r = calloc(1, sizeof(*r));
    const char *listen[1] = {w->seg[index].url};
    struct hf_segsvc_segment segment = {.id = index + 1, .spec = "mem"};
    struct hf_segsvc_opts o = {.env = w->env,
                               .dir = r->dir,
                               .plugin_dir = getenv("HF_PLUGIN_DIR"),
                               .segments = &segment,
                               .nsegments = 1,
                               .listen = listen,
                               .nlisten = 1};
    char err[512] = "";

    cr_assert(r);
    cr_assert(o.plugin_dir, "run by ctest, or set HF_PLUGIN_DIR");
    snprintf(w->seg[index].url, sizeof(w->seg[index].url), "sim://s%u", index);
    snprintf(r->dir, sizeof(r->dir), "/tmp/holdfast-client-XXXXXX");
    cr_assert(mkdtemp(r->dir));
    cr_assert_eq(hf_segsvc_new(&o, &r->svc, err, sizeof(err)), 0, "%s", err);
    w->seg[index].real = r;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void seg_server_fini(struct wseg *s)
{
    struct real *r = s->real;

    hf_segsvc_free(r->svc);
    nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(r);
}
