package fbc

import (
	"path"
	"slices"
	"strings"
)

// pattern is one line of an .indexignore file. It matches the same files as in
// upstream operator-controller, which reads these files with go-git. Where that
// differs from Git, pattern follows go-git: the same catalog must contain the same
// objects for both controllers. The differences from Git are:
//
//   - A pattern that ends in "/**" also matches a file of the name before it.
//   - "**" stops at the first folder that matches the next name, and no later
//     folder is tried.
//   - A file that "!" keeps is kept even if its folder is excluded.
//   - A space at the end of a line is never part of the pattern, even after "\".
type pattern struct {
	// folder contains the names of the folders above the .indexignore file.
	folder []string
	// keeps is true for a pattern that starts with "!".
	keeps bool
	// foldersOnly is true for a pattern that ends in "/". It matches the files below
	// a folder of that name, and no file of that name.
	foldersOnly bool
	// steps are matched one after the other. A pattern without steps matches nothing.
	steps []step
}

// step matches one name of a path.
type step struct {
	// glob is a valid pattern of [path.Match].
	glob string
	// isAnywhere is true if names before the matching one are skipped.
	isAnywhere bool
}

// parsePattern returns the pattern of a line, which has no space around it, of an
// .indexignore file in dir. Invalid patterns match nothing, as in go-git.
func parsePattern(line, dir string) pattern {
	var p pattern
	if dir != "." {
		p.folder = strings.Split(dir, "/")
	}
	line, p.keeps = strings.CutPrefix(line, "!")
	line, p.foldersOnly = strings.CutSuffix(line, "/")
	if strings.Contains(line, "/") {
		p.steps = parseSteps(strings.Split(line, "/"))
	} else if line != "" {
		p.steps = []step{{glob: line, isAnywhere: true}}
	}
	if slices.ContainsFunc(p.steps, step.isInvalid) {
		p.steps = nil
	}
	return p
}

// parseSteps returns the steps of a pattern with slashes, split at these.
func parseSteps(globs []string) []step {
	var steps []step
	isAnywhere := false
	for _, glob := range globs {
		switch {
		case glob == "":
			isAnywhere = false
		case glob == "**":
			isAnywhere = true
		case strings.Contains(glob, "**"):
			return nil
		default:
			steps = append(steps, step{glob: glob, isAnywhere: isAnywhere})
			isAnywhere = false
		}
	}
	return steps
}

// matches reports whether the pattern matches the file of that path, given as its
// names, or a folder above. Each byte of the pattern is compared at most once with
// each byte of the path, because no step is tried again after a later one has failed.
func (p pattern) matches(names []string) bool {
	if len(names) <= len(p.folder) || !slices.Equal(names[:len(p.folder)], p.folder) {
		return false
	}
	names = names[len(p.folder):]
	for _, s := range p.steps {
		candidates := names
		if !s.isAnywhere {
			candidates = names[:min(1, len(names))]
		}
		at := slices.IndexFunc(candidates, s.matches)
		if at < 0 {
			return false
		}
		names = names[at+1:]
	}
	return len(p.steps) > 0 && (len(names) > 0 || !p.foldersOnly)
}

func (s step) matches(name string) bool {
	isMatch, err := path.Match(s.glob, name)
	return isMatch && err == nil
}

// isInvalid reports whether the glob has a syntax error. [path.Match] finds it for
// every name.
func (s step) isInvalid() bool {
	_, err := path.Match(s.glob, "")
	return err != nil
}
