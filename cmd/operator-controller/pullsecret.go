package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
)

// pullSecret keeps a file with registry credentials like the Secret that it is
// made from, on every replica.
type pullSecret struct {
	reader client.Reader
	file   string
}

// addPullSecret gives the path of the credentials file; it is empty when no
// global pull secret is configured, so that the system's own files are used.
func addPullSecret(mgr ctrl.Manager, o *options) (string, error) {
	if o.pullSecret.Name == "" {
		return "", nil
	}
	file := filepath.Join(o.cachePath, "auth", "auth.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("making the directory of registry credentials: %w", err)
	}
	everyReplica := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret").
		For(&corev1.Secret{}).
		WithOptions(crcontroller.Options{NeedLeaderElection: &everyReplica}).
		Complete(&pullSecret{reader: mgr.GetClient(), file: file})
	if err != nil {
		return "", fmt.Errorf("setting up the controller of the pull secret: %w", err)
	}
	return file, nil
}

// Reconcile writes the file, or removes it when the Secret is gone. Nothing of
// the Secret is logged or returned.
func (p *pullSecret) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	err := p.reader.Get(ctx, req.NamespacedName, secret)
	if apierrors.IsNotFound(err) {
		if err := os.Remove(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ctrl.Result{}, fmt.Errorf("removing registry credentials: %w", err)
		}
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading pull secret %q: %w", req.NamespacedName, err)
	}
	credentials, err := credentialsOf(secret)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the pull secret cannot be used; credentials stay as they were")
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, replaceFile(p.file, credentials)
}

var errNoCredentials = errors.New("no valid .dockerconfigjson or .dockercfg")

// credentialsOf gives the content of a Docker configuration file. Entries are
// taken over whole, whatever kind of credentials they hold.
func credentialsOf(secret *corev1.Secret) ([]byte, error) {
	entries := map[string]json.RawMessage{}
	if raw, ok := secret.Data[corev1.DockerConfigKey]; ok {
		if err := json.Unmarshal(raw, &entries); err != nil {
			return nil, errNoCredentials
		}
	}
	if raw, ok := secret.Data[corev1.DockerConfigJsonKey]; ok {
		var config struct {
			Auths map[string]json.RawMessage `json:"auths"`
		}
		if err := json.Unmarshal(raw, &config); err != nil {
			return nil, errNoCredentials
		}
		maps.Copy(entries, config.Auths)
	}
	if len(entries) == 0 {
		return nil, errNoCredentials
	}
	return json.Marshal(map[string]any{"auths": entries})
}

// replaceFile never leaves half a file.
func replaceFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".auth-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing registry credentials: %w", err)
	}
	_, writeErr := temporary.Write(data)
	if err := errors.Join(writeErr, temporary.Close()); err != nil {
		return fmt.Errorf("writing registry credentials: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("writing registry credentials: %w", err)
	}
	return nil
}
