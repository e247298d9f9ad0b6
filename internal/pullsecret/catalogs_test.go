package pullsecret

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// typedSecret is a Secret of a type in the namespace of the controller, in its first version.
func typedSecret(name string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name, ResourceVersion: "1"}, Type: kind, Data: data}
}

func pullSecret(name, auths string) *corev1.Secret {
	return typedSecret(name, corev1.SecretTypeDockerConfigJson, map[string][]byte{".dockerconfigjson": []byte(`{"auths":` + auths + `}`)})
}

// catalogWorld are Catalogs that run as a manager would have them run.
type catalogWorld struct {
	t        *testing.T
	api      *fake.Clientset
	catalogs *Catalogs
	changed  chan string
}

func startCatalogs(t *testing.T, base string, secrets ...*corev1.Secret) *catalogWorld {
	t.Helper()
	w := &catalogWorld{t: t, api: fake.NewClientset(), changed: make(chan string, 1000)}
	for _, secret := range secrets {
		if err := w.api.Tracker().Add(secret); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "auth.json")
	if base != "" {
		if err := os.WriteFile(file, []byte(base), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.catalogs, err = NewCatalogs(CatalogsConfig{API: w.api, Namespace: "system", File: file}); err != nil {
		t.Fatal(err)
	}
	w.catalogs.changed = func(catalog string) { w.changed <- catalog }
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	var worker sync.WaitGroup
	t.Cleanup(func() {
		queue.ShutDown()
		worker.Wait()
	})
	if err := w.catalogs.secrets.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	worker.Go(func() {
		for {
			request, shutdown := queue.Get()
			if shutdown {
				return
			}
			if _, err := w.catalogs.Reconcile(t.Context(), request); err != nil {
				t.Error(err)
			}
			queue.Done(request)
		}
	})
	return w
}

// await asks for the credentials of a catalog, and again whenever somebody is told of a change,
// until they are as expected.
func (w *catalogWorld) await(catalog Catalog, isExpected func(Credentials, error) bool) Credentials {
	w.t.Helper()
	for {
		found, err := w.catalogs.Credentials(catalog)
		if isExpected(found, err) {
			return found
		}
		select {
		case <-w.changed:
		case <-time.After(30 * time.Second):
			w.t.Fatalf("nobody is told; the last is %+v, %v", found, err)
		}
	}
}

// known is what a catalog has once its Secrets are known.
func (w *catalogWorld) known(catalog Catalog) (found Credentials, err error) {
	w.t.Helper()
	w.await(catalog, func(credentials Credentials, problem error) bool {
		found, err = credentials, problem
		return !errors.Is(err, ErrUnknown)
	})
	return found, err
}

func isGood(_ Credentials, err error) bool { return err == nil }

func isUnusable(_ Credentials, err error) bool {
	_, unusable := errors.AsType[*SecretError](err)
	return unusable
}

// content is what is written for a pull; empty for no file.
func content(t *testing.T, of Credentials) string {
	t.Helper()
	file, err := of.Write()
	if err != nil {
		t.Fatal(err)
	}
	if file == "" {
		return ""
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(filepath.Base(file), temporaryFiles) {
		t.Errorf("the file is %v: %v", info, err)
	}
	data, err := os.ReadFile(file)
	if err := errors.Join(err, os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestCredentialsOfACatalog(t *testing.T) {
	t.Parallel()
	const base = `{"auths":{"a":{"auth":"controller"},"b":{"auth":"controller"},"b/team":{"auth":"controller"}}}`
	large := pullSecret("large", `{"a":{"auth":"`+strings.Repeat("x", maxCredentials)+`"}}`)
	tests := map[string]struct {
		reason  string
		secrets []*corev1.Secret
		names   []string
		want    string // the file; "" for none
		fails   string // in the error
	}{
		"none":           {reason: "the controller's do"},
		"its own win":    {secrets: []*corev1.Secret{pullSecret("s", `{"b":{"auth":"own"}}`)}, names: []string{"s"}, want: `{"auths":{"a":{"auth":"controller"},"b":{"auth":"own"}}}`},
		"the last wins":  {secrets: []*corev1.Secret{pullSecret("s", `{"c":{"auth":"1"}}`), pullSecret("t", `{"c":{"auth":"2"}}`)}, names: []string{"t", "s"}, want: `{"auths":{"a":{"auth":"controller"},"b":{"auth":"controller"},"b/team":{"auth":"controller"},"c":{"auth":"1"}}}`},
		"of the old":     {secrets: []*corev1.Secret{typedSecret("s", corev1.SecretTypeDockercfg, map[string][]byte{".dockercfg": []byte(`{"b":{"auth":"own"}}`)})}, names: []string{"s"}, want: `{"auths":{"a":{"auth":"controller"},"b":{"auth":"own"}}}`},
		"missing":        {names: []string{"s"}, fails: `pull secret "s" in namespace "system" does not exist: create it there`},
		"one is missing": {secrets: []*corev1.Secret{pullSecret("s", `{"b":{"auth":"own"}}`)}, names: []string{"s", "t"}, fails: `pull secret "t" in namespace "system" does not exist`},
		"another type": {
			reason: "release records, keys and tokens are Secrets, too", secrets: []*corev1.Secret{typedSecret("s", corev1.SecretTypeOpaque, map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"a":{}}}`)})},
			names: []string{"s"}, fails: "is not of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg: create it anew",
		},
		"malformed": {reason: "nothing of it is told", secrets: []*corev1.Secret{pullSecret("s", `"confidential`)}, names: []string{"s"}, fails: "has no valid .dockerconfigjson or .dockercfg with credentials: correct its content"},
		"empty":     {secrets: []*corev1.Secret{pullSecret("s", `{}`)}, names: []string{"s"}, fails: "correct its content"},
		"too large": {secrets: []*corev1.Secret{large}, names: []string{"large"}, fails: "have more than 4194304 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startCatalogs(t, base, tt.secrets...)
			got, err := w.known(Catalog{Name: "c", Secrets: tt.names})
			if secret, isSecret := errors.AsType[*SecretError](err); isSecret != (tt.fails != "") || isSecret && !strings.Contains(secret.Error(), tt.fails) {
				t.Fatalf("error %v, want %q (%s)", err, tt.fails, tt.reason)
			}
			if err != nil {
				if strings.Contains(err.Error(), "confidential") || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %q tells more than it should", err)
				}
				return
			}
			if written := content(t, got); written != tt.want || (got.Version == "") != (len(tt.names) == 0) {
				t.Errorf("version %q, file %s, want %s", got.Version, written, tt.want)
			}
		})
	}
}

// TestCatalogsHearOfTheirSecrets: when one comes, changes or goes, nobody has to ask.
func TestCatalogsHearOfTheirSecrets(t *testing.T) {
	t.Parallel()
	w := startCatalogs(t, "", pullSecret("other", `{"a":{"auth":"3"}}`))
	catalog := Catalog{Name: "c", Secrets: []string{"s"}}
	w.await(catalog, isUnusable)
	secrets := w.api.CoreV1().Secrets("system")
	secret := pullSecret("s", `{"a":{"auth":"1"}}`)
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first := w.await(catalog, isGood)
	if got := content(t, first); got != `{"auths":{"a":{"auth":"1"}}}` {
		t.Errorf("got %s", got)
	}
	secret = pullSecret("s", `{"a":{"auth":"2"}}`)
	secret.ResourceVersion = "2"
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := w.await(catalog, func(found Credentials, err error) bool { return err == nil && found.Version != first.Version })
	if got := content(t, second); got != `{"auths":{"a":{"auth":"2"}}}` {
		t.Errorf("got %s", got)
	}
	if err := secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(catalog, isUnusable)
	// It names another one.
	catalog.Secrets = []string{"other"}
	if got := content(t, w.await(catalog, isGood)); got != `{"auths":{"a":{"auth":"3"}}}` {
		t.Errorf("got %s", got)
	}
}

// TestSecretsOfCatalogsAreBounded: what later catalogs name beyond the bound is not held, and
// there is a place again when an older one goes.
func TestSecretsOfCatalogsAreBounded(t *testing.T) {
	t.Parallel()
	var secrets []*corev1.Secret
	var names []string
	for i := range maxCatalogSecrets {
		names = append(names, fmt.Sprintf("s%02d", i))
		secrets = append(secrets, pullSecret(names[i], `{"a":{"auth":"1"}}`))
	}
	w := startCatalogs(t, "", append(secrets, pullSecret("a", `{"a":{"auth":"1"}}`))...)
	old, young := Catalog{Name: "old", Created: time.Unix(1, 0), Secrets: names}, Catalog{Name: "young", Created: time.Unix(2, 0), Secrets: []string{"a"}}
	w.await(young, isGood)
	if _, err := w.catalogs.Credentials(old); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	_, err := w.catalogs.Credentials(young)
	if secret, ok := errors.AsType[*SecretError](err); !ok || !strings.Contains(secret.Error(), "beyond the 50") {
		t.Errorf("error %v, want that there is no place", err)
	}
	w.await(old, isGood)
	w.await(Catalog{Name: "shared", Created: time.Unix(3, 0), Secrets: names[:1]}, isGood)
	// Now it goes, and "shared" keeps one of its Secrets.
	w.catalogs.Forget("old")
	w.await(young, isGood)
}

// TestMoreSpecificCredentialsOfTheController do not win over those of a catalog.
func TestMoreSpecificCredentialsOfTheController(t *testing.T) {
	t.Parallel()
	entry := []byte(`{}`)
	for _, tt := range []struct {
		base, own string
		stays     bool
	}{
		{base: "quay.io", own: "quay.io"},
		{base: "quay.io/team", own: "quay.io"},
		{base: "quay.io/team/app", own: "quay.io/team"},
		{base: "quay.io", own: "quay.io/team", stays: true},
		{base: "quay.io/team", own: "quay.io/team2", stays: true},
		{base: "quay.io/team2", own: "quay.io/team", stays: true},
		{base: "quay.io.example", own: "quay.io", stays: true},
		{base: "https://quay.io/v1/", own: "quay.io"},
		{base: "docker.io/library", own: "https://index.docker.io/v1/"},
		{base: "docker.io", own: "index.docker.io"},
		{base: "registry:5000", own: "registry", stays: true},
	} {
		merged := credentials{tt.base: entry}.under(credentials{tt.own: entry})
		_, ownIsThere := merged[tt.own]
		if _, stays := merged[tt.base]; stays != (tt.stays || tt.base == tt.own) || !ownIsThere {
			t.Errorf("%s under %s: %v", tt.base, tt.own, merged)
		}
	}
}
