package pullsecret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

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
	left, err := filepath.Glob(filepath.Join(filepath.Dir(cfg.File), temporaryFiles))
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	if err != nil {
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
	base, err := a.base()
	if err != nil {
		return "", err
	}
	data, err := merge([]credentials{base, own}).encode()
	if err != nil {
		return "", err
	}
	file, err = writeTemporary(filepath.Dir(a.cfg.File), data)
	return file, errors.Join(unusable, err)
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
	var all []credentials
	var unusable []error
	for _, name := range names {
		secret, err := client.Secrets(account.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		some, err := credentialsOf(secret)
		if err != nil {
			unusable = append(unusable, fmt.Errorf("secrets %q: %w", name, err))
			continue
		}
		all = append(all, some)
	}
	return merge(all), errors.Join(unusable...)
}

// base is what the controller itself has, if anything.
func (a *Accounts) base() (credentials, error) {
	data, err := os.ReadFile(a.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading registry credentials: %w", err)
	}
	return decode(data)
}
