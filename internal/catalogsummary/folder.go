package catalogsummary

import (
	"context"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// OfFolder is the summary of the catalog in a folder, which is read twice, so that no more
// is kept than what is wanted. The error is that of [fbc.Folder.Objects], or
// [ErrTooLarge].
func OfFolder(ctx context.Context, root fs.FS) ([]Package, error) {
	var b Builder
	for _, add := range []func(fbc.Object) error{b.Add, b.AddBundle} {
		for o, err := range (fbc.Folder{Root: root}).Objects(ctx) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = add(o.Object)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return b.Packages(), nil
}
