/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "transport.h"

#define URL_MAX 200 /* nng keeps inproc names and socket paths in 128 bytes or less */

/* host:port after "tcp://"; the host is copied without brackets. */
static bool tcp_split(const char *s, char *host, size_t host_size)
{
    const char *colon = strrchr(s, ':');
    char *end;
    size_t n;
    unsigned long port;

    /* nng takes "source;host" and paths after the port; we do not. */
    if (!colon || colon[1] < '0' || colon[1] > '9' || strpbrk(s, ";/@?#"))
        return false;
    port = strtoul(colon + 1, &end, 10);
    if (*end != '\0' || port > 65535)
        return false;
    n = (size_t)(colon - s);
    if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
        s++;
        n -= 2;
    }
    if (n == 0 || n >= host_size)
        return false;
    memcpy(host, s, n);
    host[n] = '\0';
    return true;
}

static bool is_loopback(const char *host)
{
    struct in_addr a4;
    struct in6_addr a6;

    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &a4) == 1)
        return ntohl(a4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &a6) == 1 && IN6_IS_ADDR_LOOPBACK(&a6);
}

int hf_rpc_url_check(const char *url, bool sim, bool insecure)
{
    char host[URL_MAX];

    if (strlen(url) >= URL_MAX)
        return HF_E_INVAL;
    if (strncmp(url, "sim://", 6) == 0)
        return sim && url[6] ? 0 : HF_E_INVAL;
    if (sim)
        return HF_E_INVAL;
    if (strncmp(url, "inproc://", 9) == 0)
        return url[9] ? 0 : HF_E_INVAL;
    if (strncmp(url, "ipc://", 6) == 0)
        return url[6] == '/' ? 0 : HF_E_INVAL;
    if (strncmp(url, "tcp://", 6) != 0 || !tcp_split(url + 6, host, sizeof(host)))
        return HF_E_INVAL;
    return insecure || is_loopback(host) ? 0 : HF_E_PERM;
}

static bool usable(struct hf_loop *loop, const char *url)
{
    return hf_tr_kind(url) != HF_TR_INPROC || hf_tr_inproc_served(hf_loop_env(loop), url);
}

int hf_rpc_url_pick(struct hf_loop *loop, const char *urls, bool insecure, char *ret, size_t size)
{
    bool sim = hf_env_is_sim(hf_loop_env(loop)), picked = false, any = false;
    char url[URL_MAX];

    while (*(urls += strspn(urls, " "))) {
        size_t n = strcspn(urls, " ");
        int rc;

        if (n >= sizeof(url) || n >= size)
            return HF_E_INVAL;
        memcpy(url, urls, n);
        url[n] = '\0';
        urls += n;
        rc = hf_rpc_url_check(url, sim, insecure);
        if (rc)
            return rc;
        if (!any || (!picked && usable(loop, url)))
            memcpy(ret, url, n + 1);
        picked |= usable(loop, url);
        any = true;
    }
    return any ? 0 : HF_E_INVAL;
}
