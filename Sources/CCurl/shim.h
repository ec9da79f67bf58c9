#include <curl/curl.h>
#include <sys/socket.h>

// libcurl sets and reads options by functions with variable arguments, which Swift can't call: one for each type.

typedef size_t (*keepsake_curl_receiver)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode keepsake_curl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode keepsake_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode keepsake_curl_set_text(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode keepsake_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode keepsake_curl_set_headers(CURL *easy, struct curl_slist *headers) {
  return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

static inline CURLcode keepsake_curl_set_receiver(CURL *easy, CURLoption option, keepsake_curl_receiver receiver) {
  return curl_easy_setopt(easy, option, receiver);
}

static inline CURLcode keepsake_curl_set_progress(CURL *easy, curl_xferinfo_callback receiver) {
  return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, receiver);
}

static inline CURLcode keepsake_curl_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}

// A request that ends while a name is looked up doesn't wait for that. Older versions can't do it.
static inline CURLcode keepsake_curl_set_quick_exit(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
  return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
  return CURLE_OK;
#endif
}

static curl_socket_t keepsake_curl_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Programs that the game starts get none of its connections.
static inline CURLcode keepsake_curl_set_close_on_exec(CURL *easy) {
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, keepsake_curl_open);
}

static inline CURLcode keepsake_curl_initialize(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
