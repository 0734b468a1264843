package egret

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/egretstream/egret/tuple"
)

// What is shown of parameters. They are not meant for secrets, but who has one in them is
// not to be told to everybody who looks: rather too much is hidden than too little.

var (
	secretName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|credential`)
	// secretPart is name=value, name: value and "name": "value".
	secretPart = regexp.MustCompile(`(?i)((?:pass\w*|pwd|secret\w*|token|credentials?|(?:api|access|private)[-_]?key)["']?\s*[=:]\s*)` +
		`(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;&]+)`)
	// secretUser is user:password@. A password may have anything in it, so it goes on to the
	// last @.
	secretUser = regexp.MustCompile(`(?s)([^\s:/@,]*:).*@`)
	// nextURL is where another one of a list begins.
	nextURL = regexp.MustCompile(`[,;|][\w+.-]+://`)
)

// withoutSecrets returns the values of a parameter without what looks like a secret.
func withoutSecrets(name string, values []string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = withoutSecret(name, v)
	}
	return strings.Join(all, ",")
}

// withoutSecret hides what looks like a secret in a value, by its name, or as a part of
// URLs and of the strings that databases are connected by.
func withoutSecret(name, value string) string {
	if secretName.MatchString(name) && value != "" {
		return tuple.Mask
	}
	var b strings.Builder
	for value != "" {
		n := len(value)
		if at := nextURL.FindStringIndex(value); at != nil {
			n = at[0] + 1
		}
		b.WriteString(withoutUser(value[:n]))
		value = value[n:]
	}
	return secretPart.ReplaceAllString(b.String(), "${1}"+tuple.Mask)
}

// withoutUser hides passwords of the form user:password@ in one URL, or in what is none.
func withoutUser(value string) string {
	const mark = "://"
	at := strings.Index(value, mark)
	if at < 0 {
		return secretUser.ReplaceAllString(value, "${1}"+tuple.Mask+"@")
	}
	rest := value[at+len(mark):]
	if u, err := url.Parse(value); err == nil && u.User == nil && !strings.Contains(rest, mark) {
		return value // it has an @ elsewhere
	}
	return value[:at+len(mark)] + secretUser.ReplaceAllString(rest, "${1}"+tuple.Mask+"@")
}
