/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of libs/plug: what a stack specification parses to.
 */
#ifndef HF_PLUG_PRIV_H
#define HF_PLUG_PRIV_H

#include "holdfast/plug.h"

#define HF_PLUG_DEPTH_MAX 8
#define HF_PLUG_NAME_MAX  32
#define HF_PLUG_ARGS_MAX  256

struct hf_plug_layer {
    char name[HF_PLUG_NAME_MAX + 1];
    char args[HF_PLUG_ARGS_MAX + 1];
};

/* Splits "a(x=1)+b" into layers, top first. CONF with a reason in err. */
int hf_plug_spec_parse(const char *spec, struct hf_plug_layer layers[HF_PLUG_DEPTH_MAX],
                       unsigned *ret_n, char *err, size_t err_bytes);

#endif
