// Package argocd runs what config/argocd has for Argo CD as Argo CD does.
package argocd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// customizations is where the scripts are, in the layout of Argo CD's own repository.
const customizations = "config/argocd/resource_customizations/olm.operatorframework.io"

// Folder is where all is that Argo CD is to know of a kind.
func Folder(kind string) (string, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, customizations, kind), nil
}

// HealthOf is what Argo CD says of an object, by the check of its kind.
func HealthOf(ctx context.Context, obj *unstructured.Unstructured) (Health, error) {
	script, err := Script(obj.GetKind(), "health.lua")
	if err != nil {
		return Health{}, err
	}
	return Check(ctx, script, obj)
}

// Script reads one of a kind, by its path in the folder of that.
func Script(kind, path string) (string, error) {
	folder, err := Folder(kind)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(folder, path))
	if err != nil {
		return "", fmt.Errorf("reading a script: %w", err)
	}
	return string(text), nil
}
