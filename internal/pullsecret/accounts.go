package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
)

const (
	// maxSecrets is how many pull secrets of a ServiceAccount are used. Each is a
	// request, and a watch if it is the controller's.
	maxSecrets = 50

	// maxCredentials is how much those of a ServiceAccount may hold together that is
	// not the controller's, in bytes. One that is for some registries has a few KiB.
	maxCredentials = 4 << 20
)

// used are the last of the pull secrets of a ServiceAccount, which win, and an error that
// says so if there are more.
func used[T any](names []T) ([]T, error) {
	if len(names) <= maxSecrets {
		return names, nil
	}
	return names[len(names)-maxSecrets:], fmt.Errorf("there are %d imagePullSecrets, of which the last %d are used: put credentials for several registries into one", len(names), maxSecrets)
}

// AccountsConfig is what [Accounts] are made from. All fields are required.
type AccountsConfig struct {
	// Names gives the names of the pull secrets of a ServiceAccount.
	Names func(ctx context.Context, account types.NamespacedName) ([]string, error)
	// As gives a client for Secrets whose requests are those of a ServiceAccount.
	As func(account types.NamespacedName) (corev1client.SecretsGetter, error)
	// File has the credentials of the controller, see [Config.File]. The files of
	// ServiceAccounts are in the same folder.
	File string
}

// Accounts reads the pull secrets of ServiceAccounts, each as itself: what a
// ServiceAccount may not read is not used for it.
type Accounts struct{ cfg AccountsConfig }

// NewAccounts deletes what an earlier process left. It is to be called before
// the [Keeper] of the file runs.
func NewAccounts(cfg AccountsConfig) (*Accounts, error) {
	if cfg.Names == nil || cfg.As == nil || cfg.File == "" {
		return nil, errors.New("names, a client and a file are required")
	}
	if err := atomicfile.Clear(filepath.Dir(cfg.File), temporaryFiles); err != nil {
		return nil, fmt.Errorf("removing registry credentials: %w", err)
	}
	return &Accounts{cfg: cfg}, nil
}

// Write makes a file with the credentials of the controller and those of a
// ServiceAccount, which win. The caller removes it. There is no file when the
// ServiceAccount has none that can be used; the error says what of it cannot,
// and may come together with a file.
func (a *Accounts) Write(ctx context.Context, account types.NamespacedName) (file string, err error) {
	own, unusable := a.credentials(ctx, account)
	if len(own) == 0 {
		return "", unusable
	}
	base, err := readCredentials(a.cfg.File)
	if err != nil {
		return "", err
	}
	file, err = writeTemporary(filepath.Dir(a.cfg.File), merge([]credentials{base, own}))
	return file, errors.Join(unusable, err)
}

// writeTemporary makes a file that whoever has asked for it removes.
func writeTemporary(dir string, all credentials) (string, error) {
	data, err := all.encode()
	if err != nil {
		return "", err
	}
	file, err := atomicfile.Create(dir, temporaryFiles, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("writing registry credentials: %w", err)
	}
	return file, nil
}

// credentials reads what a ServiceAccount has, of which later Secrets win.
func (a *Accounts) credentials(ctx context.Context, account types.NamespacedName) (credentials, error) {
	names, err := a.cfg.Names(ctx, account)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	client, err := a.cfg.As(account)
	if err != nil {
		return nil, err
	}
	names, err = used(names)
	unusable := []error{err}
	var all []credentials
	left := maxCredentials
	for _, name := range slices.Backward(names) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		secret, err := client.Secrets(account.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		if left -= sizeOf(secret); left < 0 {
			unusable = append(unusable, fmt.Errorf("secrets %q: it and those after it have more than %d bytes, and none before it is used", name, maxCredentials))
			break
		}
		some, err := credentialsOf(secret)
		if err != nil {
			unusable = append(unusable, fmt.Errorf("secrets %q: %w", name, err))
			continue
		}
		all = append(all, some)
	}
	slices.Reverse(all)
	return merge(all), errors.Join(unusable...)
}

// readCredentials is what the controller itself has, if anything.
func readCredentials(file string) (credentials, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading registry credentials: %w", err)
	}
	return decode(data)
}

// sizeOf is how much of a Secret counts.
func sizeOf(secret *corev1.Secret) int {
	return len(secret.Data[corev1.DockerConfigKey]) + len(secret.Data[corev1.DockerConfigJsonKey])
}
