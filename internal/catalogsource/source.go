package catalogsource

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/image"
)

// Stdin is the source that stands for standard input.
const Stdin = "-"

// Usage says for help texts what a source may be.
const Usage = "a folder, a file, - for standard input, the URL below which a catalog is served, or an image"

// kind is where a catalog is to be had.
type kind string

const (
	folder kind = "folder"
	file   kind = "file"
	// stream is standard input, or a file that can be read only once.
	stream kind = "stream"
	served kind = "served"
	pulled kind = "pulled"
)

// Source is where a catalog is to be had.
type Source struct {
	// Name is what the catalog is called: the last element of where it is, without
	// what comes behind a dot or a colon.
	Name string

	kind kind
	text string
	url  *url.URL // of what is served
}

// Parse says what text stands for. What exists as a file is that, whatever it looks
// like. The error says that there is no catalog that it could stand for.
func Parse(text string) (Source, error) {
	switch {
	case text == "":
		return Source{}, errors.New("the source of a catalog is empty: it is " + Usage)
	case text == Stdin:
		return Source{Name: "stdin", kind: stream, text: text}, nil
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		return ParseURL(text)
	}
	info, err := os.Stat(text)
	if errors.Is(err, fs.ErrNotExist) {
		return parseImage(text)
	}
	if err != nil {
		return Source{}, err
	}
	full, err := filepath.Abs(text)
	if err != nil {
		return Source{}, err
	}
	name := filepath.Base(full)
	switch {
	case info.IsDir():
		return Source{Name: name, kind: folder, text: text}, nil
	case info.Mode().IsRegular():
		return Source{Name: strings.TrimSuffix(name, filepath.Ext(name)), kind: file, text: text}, nil
	}
	return Source{Name: name, kind: stream, text: text}, nil
}

// ParseAll is [Parse] for several. Names that are taken by one before get a number.
func ParseAll(texts []string) ([]Source, error) {
	sources, taken := make([]Source, 0, len(texts)), make([]string, 0, len(texts))
	for i, text := range texts {
		if text == Stdin && slices.Contains(texts[:i], Stdin) {
			return nil, errors.New("standard input can be read only once")
		}
		source, err := Parse(text)
		if err != nil {
			return nil, err
		}
		source.Name = unusedName(source.Name, taken)
		sources, taken = append(sources, source), append(taken, source.Name)
	}
	return sources, nil
}

func unusedName(name string, taken []string) string {
	unused := name
	for n := 2; slices.Contains(taken, unused); n++ {
		unused = name + "-" + strconv.Itoa(n)
	}
	return unused
}

// ParseURL is [Parse] for the URL of a server, and for nothing else: it may come from somebody
// who has no say in which files and images are read.
func ParseURL(text string) (Source, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return Source{}, err
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return Source{}, fmt.Errorf("%q is no URL of a server", text)
	}
	parsed.Path = strings.TrimSuffix(strings.TrimSuffix(parsed.Path, "/"), "/api/v1/all")
	name := path.Base(parsed.Path)
	if strings.Trim(parsed.Path, "/") == "" {
		name = parsed.Hostname()
	}
	return Source{Name: name, kind: served, text: parsed.Redacted(), url: parsed}, nil
}

func parseImage(text string) (Source, error) {
	if err := image.CheckReference(text); err != nil {
		return Source{}, fmt.Errorf("%q is neither a folder, a file, a URL nor an image: %w", text, err)
	}
	name, _, _ := strings.Cut(path.Base(text), "@")
	name, _, _ = strings.Cut(name, ":")
	return Source{Name: name, kind: pulled, text: text}, nil
}

// String is the source as it may be shown: without a password.
func (s Source) String() string {
	if s.text == Stdin {
		return "standard input"
	}
	return s.text
}

// storedAs is the name of the file for what is read once, as messages have it.
func (s Source) storedAs() string {
	switch {
	case s.kind == served:
		return "all"
	case s.text == Stdin:
		return "stdin"
	}
	return "stream"
}

// Live gives the files of a folder or a file as they are whenever they are read;
// false for what is read once.
func (s Source) Live() (fs.FS, bool) {
	switch s.kind {
	case folder:
		return os.DirFS(s.text), true
	case file:
		return oneFile{FS: os.DirFS(filepath.Dir(s.text)), name: filepath.Base(s.text)}, true
	case stream, served, pulled:
	}
	return nil, false
}

// oneFile is a folder with one of its files in it.
type oneFile struct {
	fs.FS

	name string
}

var _ fs.ReadDirFS = oneFile{}

func (f oneFile) ReadDir(string) ([]fs.DirEntry, error) {
	info, err := fs.Stat(f.FS, f.name)
	if err != nil {
		return nil, err
	}
	return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
}
