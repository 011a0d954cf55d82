package environments

import (
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/env/shop"
)

// webshop declares the generated shop, or WebShop's own release if the settings name its folder.
var webshop = func() env.Declaration {
	d := shop.Declaration
	d.Undemonstrated = func(s env.Settings) string {
		if releaseOf(s) == "" {
			return ""
		}
		return "WebShop's release has no expert"
	}
	d.Starts = func(s env.Settings) string {
		if folder := releaseOf(s); folder != "" {
			return "Python, WebShop's release " + folder
		}
		return ""
	}
	d.Open = func(o env.Options) (env.Environment, error) {
		if folder := releaseOf(o.Settings); folder != "" {
			return remote.OpenWebShop(folder, o)
		}
		return shop.Declaration.Open(o)
	}
	return d
}()

func releaseOf(s env.Settings) string {
	folder, _ := s["release"].(string)
	return folder
}
