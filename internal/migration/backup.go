package migration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// Files of a backup are for whoever runs the move alone: there are Secrets among them.
const (
	folderMode = 0o700
	fileMode   = 0o600
)

// backUp writes every object that a move is going to touch to a file of its own, below a folder for the operator.
func (c *Cluster) backUp(ctx context.Context, checked *Checked, run Run) error {
	op := checked.Operator
	folder := filepath.Join(run.Backup, op.Name.Namespace+"_"+op.Name.Name)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return fmt.Errorf("backing up: %w", err)
	}
	var refs []classic.Ref
	for _, objects := range [][]classic.Object{checked.Fates.Adopted, checked.Fates.Deleted, checked.Fates.Stays} {
		for _, one := range objects {
			refs = append(refs, classic.RefOf(one))
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
	return os.WriteFile(filepath.Join(folder, fileName(ref)), text, fileMode)
}

// fileName has no character of the names of roles that a file system may not have, nor one that leads elsewhere.
func fileName(ref classic.Ref) string {
	name := strings.Join([]string{ref.Kind, ref.Group, ref.Namespace, ref.Name}, "_")
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '/' || r == '\\' {
			return '-'
		}
		return r
	}, name) + ".yaml"
}
