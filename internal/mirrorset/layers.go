package mirrorset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"
	"go.podman.io/storage/pkg/unshare"
)

// keptLayers is how many directories stay. A pull reads its own for as long as it goes on:
// one during which sets change so many times is tried again.
const keptLayers = 8

// Layers put the sets below the files of an administrator. What they give is never written
// again, so that all reads of one pull see the same. It is safe for concurrent use.
type Layers struct {
	dir      string
	explicit string
	sets     func(context.Context) ([]Set, error)

	mu sync.Mutex
	// made are the names of directories, the latest last.
	made []string
}

// NewLayers makes files below dir, which is its own and is emptied. Explicit is the main file
// of an administrator, with others in a directory of that name and .d; empty means those of
// the system. Sets may wait until the sets are known.
func NewLayers(dir, explicit string, sets func(context.Context) ([]Set, error)) (*Layers, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("emptying the directory of mirrors: %w", err)
	}
	return &Layers{dir: dir, explicit: explicit, sets: sets}, nil
}

// RegistriesConf returns a main file, with others in a directory of that name and .d, as of
// now. While there are no sets these are the explicit ones.
func (l *Layers) RegistriesConf(ctx context.Context) (string, error) {
	sets, err := l.sets(ctx)
	if err != nil {
		return "", fmt.Errorf("reading mirror sets: %w", err)
	}
	if len(sets) == 0 {
		return l.explicit, nil
	}
	above, err := l.read()
	if err != nil {
		return "", err
	}
	name, err := nameOf(sets, above)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	main := filepath.Join(l.dir, name, "registries.conf")
	if slices.Contains(l.made, name) {
		return main, nil
	}
	if err := write(filepath.Join(l.dir, name), sets, above); err != nil {
		return "", fmt.Errorf("writing the registries.conf of mirror sets: %w", err)
	}
	l.made = append(l.made, name)
	if len(l.made) > keptLayers {
		_ = os.RemoveAll(filepath.Join(l.dir, l.made[0])) // what stays is of no use, and goes with the next start
		l.made = l.made[1:]
	}
	return main, nil
}

// read gives the content of the explicit files, those that win last.
func (l *Layers) read() ([][]byte, error) {
	files := &configfile.File{
		Name: "registries", Extension: "conf", EnvironmentName: "CONTAINERS_REGISTRIES_CONF", UserId: unshare.GetRootlessUID(),
	}
	if l.explicit != "" {
		files.CustomConfigFilePath, files.CustomConfigFileDropInDirectory = l.explicit, l.explicit+".d"
	}
	var all [][]byte
	for item, err := range configfile.Read(files) {
		if err != nil {
			return nil, fmt.Errorf("reading registries.conf: %w", err)
		}
		content, err := io.ReadAll(item.Reader)
		if err != nil {
			return nil, fmt.Errorf("reading registries.conf: %w", err)
		}
		all = append(all, content)
	}
	return all, nil
}

// nameOf differs if anything does that the files are made of.
func nameOf(sets []Set, above [][]byte) (string, error) {
	all := sha256.New()
	if err := json.NewEncoder(all).Encode(sets); err != nil { //nolint:musttag // nobody reads it
		return "", err
	}
	for _, content := range above {
		fmt.Fprintf(all, "%d\n%s", len(content), content)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// write makes the main file of sets, and puts copies of the explicit files after it: of two
// files that name one prefix, the library takes the later.
func write(dir string, sets []Set, above [][]byte) (err error) {
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir) // the error says what is wrong
		}
	}()
	dropIns := filepath.Join(dir, "registries.conf.d")
	if err := os.MkdirAll(dropIns, 0o700); err != nil {
		return err
	}
	for i, content := range above {
		if err := os.WriteFile(filepath.Join(dropIns, fmt.Sprintf("%06d.conf", i)), content, 0o600); err != nil {
			return err
		}
	}
	none := filepath.Join(dir, "none.conf")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		return err
	}
	explicit := &types.SystemContext{SystemRegistriesConfPath: none, SystemRegistriesConfDirPath: dropIns}
	registries, _, err := Registries(sets, func(name string) (*sysregistriesv2.Registry, error) {
		return sysregistriesv2.FindRegistry(explicit, name)
	})
	if err != nil {
		return err
	}
	file, err := encode(registries)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "registries.conf"), file, 0o600)
}
