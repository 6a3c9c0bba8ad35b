// Part of the libcurl in wheels. libcurl has Mbed TLS read the file of authorities for every
// connection and keep a copy of its own, half a megabyte each; here all connections share one.
#include <curl/curl.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct authorities {
  struct authorities* next;
  mbedtls_x509_crt certificates;
  char file[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct authorities* known;  // never freed: connections of any thread use them

static struct authorities* find(const char* file) {
  struct authorities* found = known;
  while (found != NULL && strcmp(found->file, file) != 0) found = found->next;
  return found;
}

static struct authorities* load(const char* file) {
  const size_t name_bytes = strlen(file) + 1;
  struct authorities* const loaded = malloc(sizeof *loaded + name_bytes);
  if (loaded == NULL) return NULL;
  memcpy(loaded->file, file, name_bytes);
  mbedtls_x509_crt_init(&loaded->certificates);
  // Positive: so many certificates could not be read, and the others are there.
  if (mbedtls_x509_crt_parse_file(&loaded->certificates, file) < 0) {
    mbedtls_x509_crt_free(&loaded->certificates);
    free(loaded);
    return NULL;
  }
  loaded->next = known;
  known = loaded;
  return loaded;
}

// For CURLOPT_SSL_CTX_FUNCTION; its data is the name of the file.
CURLcode lowtide_trust_file(CURL* easy, void* config, void* file) {
  (void)easy;
  pthread_mutex_lock(&mutex);
  struct authorities* trusted = find(file);
  if (trusted == NULL) trusted = load(file);
  pthread_mutex_unlock(&mutex);
  if (trusted == NULL) return CURLE_SSL_CACERT_BADFILE;
  mbedtls_ssl_conf_ca_chain(config, &trusted->certificates, NULL);
  return CURLE_OK;
}
