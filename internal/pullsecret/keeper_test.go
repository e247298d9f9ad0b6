package pullsecret

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func secretOf(namespace, name, auths string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{".dockerconfigjson": []byte(`{"auths":` + auths + `}`)},
	}
}

func account(secrets ...string) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "controller"}}
	for _, name := range secrets {
		account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return account
}

// world is a Keeper that runs as a manager would have it run.
type world struct {
	t    *testing.T
	api  *fake.Clientset
	file string
	log  chan string
}

func startWorld(t *testing.T, cfg Config, api *fake.Clientset) *world {
	t.Helper()
	w := &world{t: t, api: api, log: make(chan string, 100)}
	if cfg.File == "" {
		cfg.File = filepath.Join(t.TempDir(), "auth", "auth.json")
	}
	cfg.API, w.file = api, cfg.File
	keeper, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	var worker sync.WaitGroup
	t.Cleanup(func() {
		queue.ShutDown()
		worker.Wait() // it may be writing the file
	})
	for _, followed := range []source.Source{keeper.accounts, keeper.secrets} {
		if err := followed.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
	}
	logger := funcr.New(func(_, args string) {
		select {
		case w.log <- args:
		default:
		}
	}, funcr.Options{})
	worker.Go(func() {
		for {
			request, shutdown := queue.Get()
			if shutdown {
				return
			}
			if _, err := keeper.Reconcile(ctrl.LoggerInto(t.Context(), logger), request); err != nil {
				t.Error(err)
			}
			queue.Done(request)
		}
	})
	return w
}

// await waits for the file to have that content; "" is no file.
func (w *world) await(want string) {
	w.t.Helper()
	var got []byte
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		got, _ = os.ReadFile(w.file)
		if string(got) == want {
			return
		}
	}
	w.t.Fatalf("the file has %s, want %s", got, want)
}

func (w *world) update(secret *corev1.Secret) {
	w.t.Helper()
	if _, err := w.api.CoreV1().Secrets(secret.Namespace).Update(w.t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

var (
	global = types.NamespacedName{Namespace: "config", Name: "global"}
	own    = types.NamespacedName{Namespace: "system", Name: "controller"}
)

func TestSecretsAreMerged(t *testing.T) {
	t.Parallel()
	w := startWorld(t, Config{Global: global, ServiceAccount: own}, fake.NewClientset(
		account("first", "missing", "second"),
		secretOf("config", "global", `{"a":{"auth":"g"},"b":{"auth":"g"},"c":{"identitytoken":"g"}}`),
		secretOf("system", "first", `{"b":{"auth":"1"},"d":{"auth":"1"}}`),
		secretOf("system", "second", `{"d":{"auth":"2"}}`),
		secretOf("system", "unrelated", `{"e":{"auth":"x"}}`),
	))
	w.await(`{"auths":{"a":{"auth":"g"},"b":{"auth":"1"},"c":{"identitytoken":"g"},"d":{"auth":"2"}}}`)
	info, err := os.Stat(w.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file = %v, %v, want one that only we can read", info, err)
	}
}

func TestSecretsOfTheControllerAreBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range maxSecrets + 1 {
		names = append(names, fmt.Sprintf("s%04d", i))
	}
	w := startWorld(t, Config{ServiceAccount: own}, fake.NewClientset(
		account(names...),
		secretOf("system", names[0], `{"a":{"auth":"first"}}`),
		secretOf("system", names[1], `{"b":{"auth":"second"}}`),
		secretOf("system", names[maxSecrets], `{"c":{"auth":"last"}}`),
	))
	w.await(`{"auths":{"b":{"auth":"second"},"c":{"auth":"last"}}}`)
	if line := <-w.log; !strings.Contains(line, "there are 51 imagePullSecrets, of which the last 50 are used") {
		t.Errorf("the log has %s", line)
	}
}

func TestFileFollowsItsSources(t *testing.T) {
	t.Parallel()
	w := startWorld(t, Config{Global: global, ServiceAccount: own}, fake.NewClientset(account()))
	accounts, secrets := w.api.CoreV1().ServiceAccounts("system"), w.api.CoreV1().Secrets("system")
	if _, err := accounts.Update(t.Context(), account("pull"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Create(t.Context(), secretOf("system", "pull", `{"a":{"auth":"1"}}`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(`{"auths":{"a":{"auth":"1"}}}`)
	w.update(secretOf("system", "pull", `{"a":{"auth":"2"}}`))
	w.await(`{"auths":{"a":{"auth":"2"}}}`)
	if _, err := accounts.Update(t.Context(), account(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("")
	if _, err := accounts.Update(t.Context(), account("pull"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await(`{"auths":{"a":{"auth":"2"}}}`)
	if err := secrets.Delete(t.Context(), "pull", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("")
}

func TestMalformedSecretSpoilsNothing(t *testing.T) {
	t.Parallel()
	w := startWorld(t, Config{Global: global, ServiceAccount: own}, fake.NewClientset(
		account("pull"), secretOf("config", "global", `{"a":{"auth":"g"}}`), secretOf("system", "pull", `{"b":{"auth":"1"}}`),
	))
	w.await(`{"auths":{"a":{"auth":"g"},"b":{"auth":"1"}}}`)
	w.update(secretOf("config", "global", `{"a":confidential`))
	if line := <-w.log; strings.Contains(line, "confidential") || !strings.Contains(line, "global") {
		t.Errorf("got log %s, want the name of the secret and nothing of its content", line)
	}
	w.update(secretOf("system", "pull", `{"b":{"auth":"2"}}`))
	w.await(`{"auths":{"a":{"auth":"g"},"b":{"auth":"2"}}}`)
}

func TestNoSourcesMeanNoFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(file, []byte("left by another configuration"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, Config{File: file}, fake.NewClientset())
	w.await("")
	for _, action := range w.api.Actions() {
		t.Errorf("unexpected request: %s %s", action.GetVerb(), action.GetResource().Resource)
	}
}

func TestNewRefusesConfigs(t *testing.T) {
	t.Parallel()
	occupied := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"no client": {File: filepath.Join(t.TempDir(), "auth.json")},
		"no file":   {API: fake.NewClientset()},
		"no folder": {API: fake.NewClientset(), File: filepath.Join(occupied, "auth.json")},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
