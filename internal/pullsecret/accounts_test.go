package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	const base = `{"auths":{"a":{"auth":"controller"},"b":{"auth":"controller"}}}`
	tests := map[string]struct {
		reason  string
		base    string
		objects []runtime.Object
		denied  string // a resource that the ServiceAccount may not get
		want    string // "" for no file
		fails   func(error) bool
	}{
		"its own win": {
			reason: "they are the more specific ones",
			base:   base, objects: []runtime.Object{account("s"), secretOf("system", "s", `{"b":{"auth":"own"},"c":{"auth":"own"}}`)},
			want: `{"auths":{"a":{"auth":"controller"},"b":{"auth":"own"},"c":{"auth":"own"}}}`,
		},
		"later ones win": {
			reason: "as for the controller's own",
			objects: []runtime.Object{
				account("s", "t"), secretOf("system", "s", `{"a":{"auth":"1"}}`), secretOf("system", "t", `{"a":{"auth":"2"}}`),
			},
			want: `{"auths":{"a":{"auth":"2"}}}`,
		},
		"none":                       {reason: "the controller's do", base: base, objects: []runtime.Object{account()}},
		"is not there":               {reason: "it says so", base: base, fails: apierrors.IsNotFound},
		"may not read its secrets":   {reason: "it says so", base: base, objects: []runtime.Object{account("s"), secretOf("system", "s", `{"a":{}}`)}, denied: "secrets", fails: apierrors.IsForbidden},
		"one is missing":             {reason: "the others do", objects: []runtime.Object{account("s", "gone"), secretOf("system", "s", `{"a":{"auth":"1"}}`)}, want: `{"auths":{"a":{"auth":"1"}}}`, fails: apierrors.IsNotFound},
		"one has no credentials":     {reason: "nothing of it is told", objects: []runtime.Object{account("s"), secretOf("system", "s", `"confidential`)}, fails: func(err error) bool { return errors.Is(err, errNoCredentials) }},
		"controller's are malformed": {reason: "nothing of them is told", base: `{"auths":"confidential`, objects: []runtime.Object{account("s"), secretOf("system", "s", `{"a":{"auth":"1"}}`)}, fails: func(err error) bool { return errors.Is(err, errNoCredentials) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "auth.json")
			if tc.base != "" {
				if err := os.WriteFile(file, []byte(tc.base), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			api := fake.NewClientset(tc.objects...)
			api.PrependReactor("get", tc.denied, func(action clienttesting.Action) (bool, runtime.Object, error) {
				resource := schema.GroupResource{Resource: action.GetResource().Resource}
				return true, nil, apierrors.NewForbidden(resource, "x", errors.New("no"))
			})
			accounts, err := NewAccounts(AccountsConfig{
				Names: namesIn(api),
				As: func(account types.NamespacedName) (corev1client.SecretsGetter, error) {
					if account != own {
						t.Errorf("reads as %s", account)
					}
					return api.CoreV1(), nil
				},
				File: file,
			})
			if err != nil {
				t.Fatal(err)
			}
			written, err := accounts.Write(t.Context(), own)
			if (err != nil) != (tc.fails != nil) || err != nil && (!tc.fails(err) || strings.Contains(err.Error(), "confidential")) {
				t.Errorf("err = %v: %s", err, tc.reason)
			}
			if (written == "") != (tc.want == "") {
				t.Fatalf("wrote %q: %s", written, tc.reason)
			}
			if written == "" {
				return
			}
			data, err := os.ReadFile(written)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(data)); diff != "" {
				t.Errorf("credentials (-want +got): %s\n%s", tc.reason, diff)
			}
			info, err := os.Stat(written)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode = %v, %v", info.Mode(), err)
			}
		})
	}
}

func namesIn(api kubernetes.Interface) func(context.Context, types.NamespacedName) ([]string, error) {
	return func(ctx context.Context, account types.NamespacedName) ([]string, error) {
		found, err := api.CoreV1().ServiceAccounts(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, reference := range found.ImagePullSecrets {
			names = append(names, reference.Name)
		}
		return names, nil
	}
}

func TestAccountsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, ".auth-1")
	kept := filepath.Join(dir, "auth.json")
	for _, file := range []string{left, kept} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientset(&corev1.ServiceAccount{})
	accountsOf(t, api, kept)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed process left is there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the credentials of the controller are gone: %v", err)
	}
}

// TestSecretsOfAServiceAccountAreBounded: whoever may change a ServiceAccount says how
// many Secrets are read.
func TestSecretsOfAServiceAccountAreBounded(t *testing.T) {
	t.Parallel()
	large := `{"a":{"auth":"` + strings.Repeat("x", 1<<20) + `"}}`
	tests := map[string]struct {
		count    int
		auths    func(i int) string
		requests int
		want     string // of the credentials
		err      string
	}{
		"as many as there may be": {
			count: maxSecrets, auths: func(i int) string { return fmt.Sprintf(`{"a":{"auth":"%d"}}`, i) },
			requests: maxSecrets, want: `{"auths":{"a":{"auth":"49"}}}`,
		},
		"many": {
			count: 1000, auths: func(i int) string { return fmt.Sprintf(`{"a%d":{"auth":"x"},"b":{"auth":"%d"}}`, i/990, i) },
			requests: maxSecrets, want: `{"auths":{"a0":{"auth":"x"},"a1":{"auth":"x"},"b":{"auth":"999"}}}`,
			err: "there are 1000 imagePullSecrets, of which the last 50 are used: put credentials for several registries into one",
		},
		"large": {
			count: 10, auths: func(i int) string { return strings.Replace(large, "a", fmt.Sprintf("a%d", i), 1) },
			requests: 4, err: `secrets "s0006": it and those after it have more than 4194304 bytes, and none before it is used`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			var objects []runtime.Object
			for i := range tc.count {
				names = append(names, fmt.Sprintf("s%04d", i))
				objects = append(objects, secretOf("system", names[i], tc.auths(i)))
			}
			api := fake.NewClientset(append(objects, account(names...))...)
			requests := 0
			api.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				requests++
				return false, nil, nil
			})
			accounts := accountsOf(t, api, filepath.Join(t.TempDir(), "auth.json"))
			written, err := accounts.Write(t.Context(), own)
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("err = %v\nwant  %s", err, tc.err)
			}
			if requests != tc.requests {
				t.Errorf("%d Secrets are read, want %d", requests, tc.requests)
			}
			data, err := os.ReadFile(written)
			if err != nil || tc.want != "" && string(data) != tc.want {
				t.Errorf("credentials = %.200s, %v; want %s", data, err, tc.want)
			}
			if len(data) > maxCredentials {
				t.Errorf("the file has %d bytes", len(data))
			}
		})
	}
}

// accountsOf reads the Secrets of a cluster, whoever asks.
func accountsOf(t *testing.T, api kubernetes.Interface, file string) *Accounts {
	t.Helper()
	accounts, err := NewAccounts(AccountsConfig{
		Names: namesIn(api),
		As:    func(types.NamespacedName) (corev1client.SecretsGetter, error) { return api.CoreV1(), nil },
		File:  file,
	})
	if err != nil {
		t.Fatal(err)
	}
	return accounts
}

func TestReadingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	api := fake.NewClientset(account("s", "t"), secretOf("system", "t", `{"a":{"auth":"1"}}`))
	ctx, cancel := context.WithCancel(t.Context())
	requests := 0
	api.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		requests++
		cancel()
		return false, nil, nil
	})
	accounts := accountsOf(t, api, filepath.Join(t.TempDir(), "auth.json"))
	if written, err := accounts.Write(ctx, own); !errors.Is(err, context.Canceled) || written != "" || requests != 1 {
		t.Errorf("%d Secrets are read, file %q, err = %v", requests, written, err)
	}
}
