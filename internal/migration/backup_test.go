package migration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// Names of objects are what tenants choose: each has a file of its own in the folder, and none is too long for it.
func TestBackupFileNames(t *testing.T) {
	t.Parallel()
	const rbac = "rbac.authorization.k8s.io"
	long := strings.Repeat("a", 253)
	names := map[string]string{}
	for _, one := range []object.Reference{
		{Group: rbac, Kind: "ClusterRole", Name: "a:b"},
		{Group: rbac, Kind: "ClusterRole", Name: "a-b"},
		{Group: rbac, Kind: "ClusterRole", Name: `a\b`},
		{Kind: "ConfigMap", Namespace: "team", Name: long},
		{Kind: "ConfigMap", Namespace: "team", Name: long[1:] + "b"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: long},
		{Kind: "../../x", Name: "../../y"},
	} {
		ref := classic.Ref{Reference: one}
		name := fileName(ref)
		if other, isTaken := names[name]; isTaken {
			t.Errorf("%s has the file %q of %s", ref.Key(), name, other)
		}
		names[name] = ref.Key().String()
		if len(name) > 255 || filepath.Base(name) != name {
			t.Errorf("%s has the file %q", ref.Key(), name)
		}
	}
}

// What somebody has put where a backup goes is not followed, and what they can read gets nothing.
func TestBackupsAreForOneAlone(t *testing.T) {
	t.Parallel()
	parent, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	folder := filepath.Join(parent, "team_sample")
	if err := os.WriteFile(elsewhere, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil { // it is what must not stay so
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(folder, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "open.yaml"), nil, 0o644); err != nil { // likewise
		t.Fatal(err)
	}
	if err := makeFolder(parent, folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.yaml", "open.yaml", "new.yaml"} {
		if err := atomicfile.Replace(filepath.Join(folder, name), ".backup-", []byte("secret")); err != nil {
			t.Fatal(err)
		}
		if is, err := os.Lstat(filepath.Join(folder, name)); err != nil || is.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, is.Mode(), err)
		}
	}
	if is, err := os.Stat(folder); err != nil || is.Mode().Perm() != folderMode {
		t.Errorf("folder: %v, %v", is.Mode(), err)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "theirs" {
		t.Errorf("elsewhere there is %q, %v", text, err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 3 {
		t.Errorf("there are %d files, %v", len(files), err)
	}
	other := filepath.Join(parent, "other")
	if err := os.Symlink(t.TempDir(), other); err != nil {
		t.Fatal(err)
	}
	if err := makeFolder(parent, other); err == nil {
		t.Error("a link is taken for the folder")
	}
}
