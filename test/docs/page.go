package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Prose are the languages of blocks that are read by people only: excerpts,
// drawings, queries, and files of tools that are not here.
var Prose = []string{"text", "json", "promql", "dockerfile", "toml"}

// Block is a fenced block of a page.
type Block struct {
	Language string
	Text     string // without its fences
	Line     int    // where it begins, from one
}

// Blocks are the fenced blocks of a page, from top to bottom.
func Blocks(page string) ([]Block, error) {
	var blocks []Block
	var open *Block
	number := 0
	for line := range strings.Lines(page) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "```")
		switch {
		case isFence && open == nil:
			open = &Block{Language: strings.TrimSpace(fence), Line: number + 1}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block at line %d has no end", open.Line)
	}
	return blocks, nil
}

// Command is one command of a block.
type Command struct {
	Text   string // for a shell; may have several lines
	Output string // what the page shows of what it prints; empty if nothing
	Line   int
}

const prompt = "$ "

// Commands are the commands of a block, in their order. With prompts, what has none
// is output.
func Commands(block Block) []Command {
	prompted := strings.HasPrefix(block.Text, prompt) || strings.Contains(block.Text, "\n"+prompt)
	var commands []Command
	number := block.Line - 1
	goesOn := false
	for line := range strings.Lines(block.Text) {
		number++
		text, isPrompt := strings.CutPrefix(line, prompt)
		last := len(commands) - 1
		switch {
		case goesOn:
			commands[last].Text += line
			goesOn = !isComplete(commands[last].Text)
		case isPrompt || !prompted && !isNothing(line):
			commands = append(commands, Command{Text: text, Line: number})
			goesOn = !isComplete(text)
		case prompted && last >= 0:
			commands[last].Output += line
		}
	}
	return commands
}

// isNothing tells lines that a shell does nothing for.
func isNothing(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

var (
	hereDocument = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?`)
	comment      = regexp.MustCompile(`(^|\s)#[^'"]*$`)
)

// isComplete tells whether a shell would carry out the text, instead of reading on.
func isComplete(text string) bool {
	if begin := hereDocument.FindStringSubmatch(text); begin != nil {
		return strings.HasSuffix(strings.TrimRight(text, "\n"), "\n"+begin[1])
	}
	if hasOpenQuote(text) {
		return false
	}
	if strings.HasPrefix(text, "for ") && !strings.HasSuffix(text, "\ndone\n") {
		return false
	}
	text = strings.TrimSpace(comment.ReplaceAllString(strings.TrimRight(text, "\n"), ""))
	for _, end := range []string{`\`, "|", "&&"} {
		if strings.HasSuffix(text, end) {
			return false
		}
	}
	return true
}

func hasOpenQuote(text string) bool {
	open, escaped := rune(0), false
	for _, char := range text {
		switch {
		case escaped:
			escaped = false
		case char == '\\' && open != '\'':
			escaped = true
		case open == 0 && (char == '\'' || char == '"'):
			open = char
		case char == open:
			open = 0
		}
	}
	return open != 0
}

var namedFile = regexp.MustCompile(`(?:-f|--filename|--config)[ =](\S+\.yaml)\b`)

// FilesOf are the YAML files that a command reads.
func FilesOf(command string) []string {
	var files []string
	for _, match := range namedFile.FindAllStringSubmatch(command, -1) {
		files = append(files, match[1])
	}
	return files
}

var title = regexp.MustCompile(`^# ([\w./-]+\.(?:yaml|json))\n`)

// Title is the name that a file has in its first line, as a comment; empty if it has
// none.
func Title(text string) string {
	if match := title.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}
