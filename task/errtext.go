package task

import "fmt"

// errorText is err.Error(), of the user, whose panic is nobody's death.
func errorText(err error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("%T, whose Error panics: %v", err, r)
		}
	}()
	return err.Error()
}
