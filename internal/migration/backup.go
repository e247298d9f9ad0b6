package migration

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// folderMode is for whoever runs the move alone: there are Secrets in a backup.
const folderMode = 0o700

// backUp writes every object that a move is going to touch to a file of its own, below a folder for the operator.
func (c *Cluster) backUp(ctx context.Context, checked *Checked, run Run) error {
	op := checked.Operator
	folder := filepath.Join(run.Backup, object.Shortened(op.Name.Namespace+"_"+op.Name.Name, maxFileName))
	if err := makeFolder(run.Backup, folder); err != nil {
		return fmt.Errorf("backing up: %w", err)
	}
	// Classic OLM makes the copies, one for each namespace, of what is backed up once.
	isCopy := map[types.UID]bool{}
	for _, one := range op.Copies {
		isCopy[one.Meta.UID] = true
	}
	var refs []classic.Ref
	for _, objects := range [][]classic.Object{checked.Fates.Adopted, checked.Fates.Deleted, checked.Fates.Stays} {
		for _, one := range objects {
			if !isCopy[one.Meta.UID] {
				refs = append(refs, classic.RefOf(one))
			}
		}
	}
	for _, group := range op.Groups {
		refs = append(refs, classic.Ref{
			Reference: object.Reference{Group: operatorsv1.GroupVersion.Group, Kind: operatorsv1.OperatorGroupKind, Namespace: group.Namespace, Name: group.Name}, UID: group.UID,
		})
	}
	run.Say(fmt.Sprintf("backing up %d objects of %s to %s", len(refs), op.Name, folder))
	for _, ref := range refs {
		if err := c.save(ctx, ref, folder); err != nil {
			return fmt.Errorf("backing up %s: %w", ref.Key(), err)
		}
	}
	return nil
}

func (c *Cluster) save(ctx context.Context, ref classic.Ref, folder string) error {
	resource, err := c.resourceOf(ref)
	if errors.Is(err, errNotServed) {
		return nil
	}
	if err != nil {
		return err
	}
	live, err := in(c.api.Resource(resource), ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	live.SetManagedFields(nil)
	text, err := yaml.Marshal(live.Object)
	if err != nil {
		return err
	}
	// What somebody has put there, such as a link to another place, is replaced, and not written to.
	return atomicfile.Replace(filepath.Join(folder, fileName(ref)), ".backup-", text)
}

// makeFolder makes one that is for whoever runs the move alone, or sees to it that one of an earlier run is.
func makeFolder(parent, folder string) error {
	if err := os.MkdirAll(parent, folderMode); err != nil {
		return err
	}
	err := os.Mkdir(folder, folderMode)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	switch is, err := os.Lstat(folder); {
	case err != nil:
		return err
	case !is.IsDir():
		return fmt.Errorf("%s is no folder: choose another one", folder)
	}
	return os.Chmod(folder, folderMode)
}

// maxFileName is what file systems take, in bytes, less what is added.
const maxFileName = 200

// fileName has no character of the names of roles that a file system may not have, nor one that leads elsewhere. Where that
// makes a difference, a digest tells the names apart.
func fileName(ref classic.Ref) string {
	name := strings.Join([]string{ref.Kind, ref.Group, ref.Namespace, ref.Name}, "_")
	written := strings.Map(func(r rune) rune {
		if r == ':' || r == '/' || r == '\\' {
			return '-'
		}
		return r
	}, name)
	if written != name {
		written = fmt.Sprintf("%s_%x", written, sha256.Sum224([]byte(name)))
	}
	return object.Shortened(written, maxFileName) + ".yaml"
}
