//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/node"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// TestNames resolves names as pods do: through the Service of CoreDNS, which runs in a
// pod.
//
//nolint:paralleltest // other tests take the names away
func TestNames(t *testing.T) {
	needNode(t)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "10.0.0.10:53")
	}}
	for name, want := range map[string]string{
		"kubernetes.default.svc.cluster.local.": "10.0.0.1",
		node.Registry + ".":                     node.Address,
	} {
		eventually(t, name, func(ctx context.Context) error {
			got, err := resolver.LookupHost(ctx, name)
			if err == nil && strings.Join(got, " ") != want {
				err = fmt.Errorf("it is %v, want %s", got, want)
			}
			return err
		})
	}
	if _, err := resolver.LookupHost(t.Context(), "nobody.test."); err == nil {
		t.Error("a name that nobody has was resolved")
	}
}

// sampleManifest returns the block of docs/sample-manifest.md that has a whole extension.
func sampleManifest(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(theSuite.Root(), "docs", "sample-manifest.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "kind: ClusterExtension\n") {
			return block[1]
		}
	}
	t.Fatal("docs/sample-manifest.md has no extension")
	return ""
}

const sampleCatalog = "sample-catalog"

// TestSampleManifest installs the extension of docs/sample-manifest.md with the permissions that it
// has there; then it is upgraded, repaired and removed, and runs all the while.
//
//nolint:paralleltest // the tests share one controller, and some stop it
func TestSampleManifest(t *testing.T) {
	needNode(t)
	const name = operator.Package
	if err := theSuite.content.CreateCatalog(t.Context(), sampleCatalog, node.Registry+"/sample-catalog:latest"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, named(&ocv1.ClusterCatalog{}, "", sampleCatalog)) })
	example := sampleManifest(t)
	kubectl(t, example, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, example, "delete", "--ignore-not-found", "-f", "-") })
	ready(t, name, "1.1.0")
	runs(t, name, "1.1.0")
	kept(t, "sample.clusterextensions.dev", name, "first")

	t.Run("upgrade", func(t *testing.T) {
		if err := theSuite.content.Update(t.Context(), name, func(extension *ocv1.ClusterExtension) {
			extension.Spec.Source.Catalog.Version = "2.x"
			extension.Spec.Source.Catalog.Channels = []string{"candidate"}
		}); err != nil {
			t.Fatal(err)
		}
		ready(t, name, "2.0.0")
		runs(t, name, "2.0.0")
		kept(t, "sample.clusterextensions.dev", name, "second")
	})
	t.Run("repair", func(t *testing.T) {
		lost := deploymentOf(t, name)
		if err := theSuite.Admin.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another Deployment", func(ctx context.Context) error {
			found := named(lost.DeepCopy(), name, name)
			if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
				return err
			}
			if found.GetUID() == lost.GetUID() {
				return errors.New("the first is still there")
			}
			return nil
		})
		ready(t, name, "2.0.0")
		runs(t, name, "2.0.0")
		kept(t, "sample.clusterextensions.dev", name, "third")
	})
	t.Run("uninstall", func(t *testing.T) {
		remove(t, named(&ocv1.ClusterExtension{}, "", name))
		eventually(t, "the end of the pods", func(ctx context.Context) error {
			left, err := pods(ctx, name, name)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("%d are left", len(left))
			}
			return err
		})
		err := theSuite.Admin.Create(t.Context(), widget("sample.clusterextensions.dev", name, "fourth", 3))
		if err == nil || apierrors.IsAlreadyExists(err) {
			t.Errorf("Widgets are still known: %v", err)
		}
	})
}

func named[T client.Object](object T, namespace, name string) T {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// runs waits until the one pod of an operator is of the version: it says so itself.
func runs(t *testing.T, name, version string) {
	t.Helper()
	want := fmt.Sprintf("sample_operator_info{version=%q} 1", version)
	eventually(t, name+" "+version+" to run", func(ctx context.Context) error {
		found, err := pods(ctx, name, name)
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("there are %d pods", len(found))
		}
		text, err := fetch(ctx, http.DefaultClient, "http://"+net.JoinHostPort(found[0].Status.PodIP, "8080")+"/metrics")
		if err == nil && !strings.Contains(text, want) {
			err = errors.New("it is another version")
		}
		return err
	})
}

// fetch gives the body of a response with status 200.
func fetch(ctx context.Context, through *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := through.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %.200s", response.Status, body)
	}
	return string(body), err
}
