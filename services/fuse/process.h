/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_FUSE_PROCESS_H
#define HF_FUSE_PROCESS_H

/* holdfast-fuse: exit status 0, 1 could not mount, 2 wrong usage or configuration. */
int fuse_process(int argc, char **argv, char *const *envp);

#endif
