package image_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/image"
)

// TestCachedContentIsForItsAudience has an image in the cache that the credentials of one
// audience have opened: another one has to open it at the registry before it is theirs.
func TestCachedContentIsForItsAudience(t *testing.T) {
	t.Parallel()
	certificate := certificateFor(t, "localhost")
	certs := t.TempDir()
	writeFile(t, filepath.Join(certs, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})))
	f := newFixture(t, func(config *image.Config) { config.CertsDir = certs })
	digest := f.push(t, mapFS(bundleFiles), nil)
	private := serveTLS(t, certificate, func(w http.ResponseWriter, req *http.Request) {
		if user, _, _ := req.BasicAuth(); user != "robot" && user != "other" {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		relay(t, w, "http://"+f.registry.Host()+req.URL.Path, req)
	})
	host := strings.TrimPrefix(private.URL, "https://")
	request := func(audience, user string) image.Request {
		file := filepath.Join(t.TempDir(), "auth.json")
		writeFile(t, file, fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":pa55word"))))
		return image.Request{
			Ref: host + "/pkg@" + digest, Select: image.BundleContent, Audience: audience,
			AuthFile: func(context.Context) string { return file },
		}
	}
	pull := func(request image.Request) error {
		img, err := f.puller.Pull(t.Context(), request)
		if err == nil {
			t.Cleanup(img.Close)
		}
		return err
	}
	refused := func(err error) bool {
		registry, ok := errors.AsType[*image.RegistryError](err)
		return ok && registry.Refused()
	}
	if err := pull(request("a", "robot")); err != nil {
		t.Fatal(err)
	}
	f.wantCached(t, 1)
	for name, of := range map[string]image.Request{"another": request("b", "nobody"), "all who name none": request("", "nobody"), "its own, changed": request("a2", "nobody")} {
		if cached, err := f.puller.Cached(t.Context(), of); cached != nil || err != nil {
			t.Errorf("audience %s: it is at hand: %v", name, err)
		}
		if err := pull(of); !refused(err) {
			t.Errorf("audience %s: error %v, want that the registry refuses", name, err)
		}
	}
	blobs := f.registry.Count("/blobs/")
	if err := pull(request("b", "other")); err != nil {
		t.Error(err)
	}
	requests := len(f.registry.Requests())
	for _, audience := range []string{"a", "b"} {
		if err := pull(request(audience, "nobody")); err != nil {
			t.Errorf("audience %s, which has opened it: %v", audience, err)
		}
	}
	if f.registry.Count("/blobs/") != blobs || len(f.registry.Requests()) != requests {
		t.Error("what is at hand was downloaded again, or asked for")
	}
}
