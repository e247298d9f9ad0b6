package catalogsource

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
)

// Summary is what a catalog has, in a line for each package. A server that has it sends
// no more than that; of others, and of files, all is read. The error names the source.
func (r *Reader) Summary(ctx context.Context, from Source) ([]catalogsummary.Package, error) {
	if from.kind == served {
		defer r.HTTP.CloseIdleConnections()
		if packages, ok := r.servedSummary(ctx, from); ok {
			return packages, nil
		}
	}
	var packages []catalogsummary.Package
	err := r.Files(ctx, from, func(files fs.FS) (err error) {
		if packages, err = catalogsummary.OfFolder(ctx, files); err != nil {
			return fmt.Errorf("reading catalog %s: %w", from, err)
		}
		return nil
	})
	return packages, err
}

// servedSummary is false where there is none; why, the attempt that follows says, which reads
// the whole catalog.
func (r *Reader) servedSummary(ctx context.Context, from Source) ([]catalogsummary.Package, bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := r.get(ctx, from.url.JoinPath("api", "v1", "summary"))
	if err != nil {
		return nil, false
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, false
	}
	packages, err := catalogsummary.Read(response.Body)
	return packages, err == nil && len(packages) > 0
}
