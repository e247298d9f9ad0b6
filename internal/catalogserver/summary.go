package catalogserver

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// summaryWriter makes the summary of content, from its objects as they are stored and then
// from the few bundles that matter, which the index finds. Without a summary clients read
// more, so that nothing that is wrong with one keeps content from being stored.
type summaryWriter struct {
	builder  catalogsummary.Builder
	tooLarge bool
}

// add takes the next object.
func (w *summaryWriter) add(o fbc.Object) {
	if w.tooLarge {
		return
	}
	if w.builder.Add(o) != nil {
		*w = summaryWriter{tooLarge: true}
	}
}

// write stores the summary in folder, beside the content and its index, which have those
// sizes. It is zero if there is none.
func (w *summaryWriter) write(folder string, contentBytes, indexBytes int64, room *diskspace.Holding) (fileDigest, error) {
	if w.tooLarge {
		return fileDigest{}, nil
	}
	if err := w.addBundles(folder, contentBytes, indexBytes); err != nil {
		if errors.Is(err, catalogsummary.ErrTooLarge) {
			return fileDigest{}, nil
		}
		return fileDigest{}, err
	}
	packages := w.builder.Packages()
	if len(packages) == 0 {
		return fileDigest{}, nil
	}
	path := filepath.Join(folder, summaryFile)
	bounded := &boundedWriter{limit: catalogsummary.MaxBytes}
	written, err := writeFile(path, func(to io.Writer) error {
		bounded.dst = &roomWriter{dst: to, room: room}
		return catalogsummary.Write(bounded, packages)
	})
	if isTooMuch(err) {
		room.Give(bounded.written)
		return fileDigest{}, os.Remove(path)
	}
	return written, err
}

func (w *summaryWriter) addBundles(folder string, contentBytes, indexBytes int64) error {
	snapshot, err := openSnapshot(filepath.Dir(folder), Record{Folder: filepath.Base(folder), Bytes: contentBytes, IndexBytes: indexBytes}, identity)
	if err != nil {
		return err
	}
	defer func() { _ = snapshot.close() }()
	for _, wanted := range w.builder.Wanted() {
		found, err := snapshot.Select(Query{Schema: schemaBundle, Package: wanted.Package, Name: wanted.Name})
		if err != nil {
			return err
		}
		for lines := fbc.NewDecoder(found.Content, fbc.Limits{}.WithDefaults()); ; {
			o, err := lines.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = w.builder.AddBundle(o)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Summary returns the summary of the content, or ErrNoContent if there is none: an earlier
// version of the program has stored the content, it has no packages, or the summary takes
// more than there is space for.
func (s *Snapshot) Summary() (Selection, error) {
	if s.Record.SummarySHA256 == "" {
		return Selection{}, ErrNoContent
	}
	return Selection{Content: s.summary, Bytes: s.Record.SummaryBytes, Digest: s.Record.SummarySHA256}, nil
}
