// The site is made of the pages as they are in the repository: docs/*.md and the pages beside README.md. What needs a page here needs no change there.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs"
import { dirname, join, posix, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const source = resolve(process.env.SITE_SOURCE || join(here, "../../.."))
const base = process.env.SITE_BASE || "/"
const version = process.env.SITE_VERSION || "" // the tag that the pages are of
const versions = (process.env.SITE_VERSIONS || "").split(" ").filter(Boolean) // all minor versions on the site, newest first
const site = process.env.SITE_URL || "" // of all versions
const repository = "https://github.com/flowfabric/flowfabric-go"

// Pages beside docs. All other files are shown by GitHub.
const beside = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"].filter(f => existsSync(join(source, f)))
const isPage = path => /^docs\/.+\.md$/.test(path) || beside.includes(path)
const address = path => path.replace(/^docs\//, "").replace(/README\.md$/, "index.md")

// As GitHub makes the anchor of a heading, and docs_test.go checks it.
const slugify = text => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")

// A link of a page leads to a page of the site, or to the file on GitHub at the same version.
function links(md) {
  md.core.ruler.after("inline", "repository-links", state => {
    const page = posix.relative(source, state.env.path)
    for (const token of state.tokens.flatMap(t => t.children ?? [])) {
      if (token.type === "code_inline") token.attrSet("v-pre", "") // {{ in code is text
      const href = token.type === "link_open" ? token.attrGet("href") : ""
      if (!href || /^([a-z]+:|#)/.test(href)) continue
      const [path, fragment] = href.split("#")
      const target = posix.join(posix.dirname(page), path).replace(/\/$/, "")
      const hash = fragment ? "#" + fragment : ""
      if (isPage(target)) {
        token.attrSet("href", "/" + address(target) + hash)
      } else {
        const kind = existsSync(join(source, target)) && statSync(join(source, target)).isDirectory() ? "tree" : "blob"
        token.attrSet("href", `${repository}/${kind}/${version || "main"}/${target}${hash}`)
      }
    }
  })
}

// The sidebar is the list of all pages that docs/llms_test.go keeps.
function sidebar() {
  const groups = []
  for (const line of readFileSync(join(source, "docs/llms.txt"), "utf8").split("\n")) {
    const title = /^## (.+)/.exec(line)?.[1]
    const page = /^- \[(.+?)\]\(([^.][^)]*\.md)\)/.exec(line)
    if (title) groups.push({ text: title === "Optional" ? "Decisions" : title, collapsed: groups.length > 1, items: [] })
    if (page) groups.at(-1).items.push({ text: page[1], link: "/" + address("docs/" + page[2]) })
  }
  groups.push({ text: "Project", collapsed: true, items: beside.slice(1).map(p => ({ text: p.replace(".md", "").replace(/\B\w+/, s => s.toLowerCase()), link: "/" + p })) })
  return groups
}

// Every link inside the made site leads to a file of it, and to an element there. VitePress itself refuses links to pages that are not there.
function checked({ outDir }) {
  const pages = readdirSync(outDir, { recursive: true }).filter(f => f.endsWith(".html"))
  const texts = new Map(pages.map(f => [f, readFileSync(join(outDir, f), "utf8")]))
  const dead = []
  let links = 0
  for (const [file, text] of texts) {
    for (const [, href] of text.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
      const from = new URL(file, "http://site" + base)
      const to = new URL(href.replaceAll("&amp;", "&"), from)
      if (to.origin !== from.origin || !to.pathname.startsWith(base)) continue
      links++
      const path = decodeURI(to.pathname.slice(base.length))
      const name = [path, path + ".html", posix.join(path, "index.html")].find(n => texts.has(n))
      const there = texts.get(name)
      const id = decodeURIComponent(to.hash.slice(1))
      if (there === undefined || (id && !there.includes(`id="${id}"`))) dead.push(`${file}: ${href}`)
    }
  }
  if (dead.length) throw new Error(`dead links:\n${dead.join("\n")}`)
  if (pages.length < 100 || links < 1000) throw new Error(`only ${pages.length} pages with ${links} links`)
  console.log(`${pages.length} pages, ${links} links inside the site`)
}

export default {
  title: "FlowFabric for Go",
  description: "Background work that must not get lost, on Valkey, Redis or a folder",
  lang: "en",
  base,
  srcDir: source,
  srcExclude: readdirSync(source, { recursive: false }).filter(f => f !== "docs" && !beside.includes(f)).map(f => statSync(join(source, f)).isDirectory() ? f + "/**" : f),
  outDir: resolve(process.env.SITE_OUT || join(here, "../../../.build/site")),
  cacheDir: join(here, "../node_modules/.vitepress"),
  rewrites: address,
  cleanUrls: true,
  buildEnd: checked,
  markdown: {
    html: false, // as GitHub shows them, pages have no tags; in text a < is a <
    linkify: false,
    anchor: { slugify },
    config: links,
  },
  vite: {
    plugins: [{
      name: "vue-of-this-folder", // pages are outside it, and import vue
      enforce: "pre",
      resolveId(id, importer) {
        if (/^vue(\/|$)/.test(id) && importer?.includes(".md")) return this.resolve(id, join(here, "config.js"), { skipSelf: true })
      },
    }],
    build: { chunkSizeWarningLimit: 4000 }, // the index of the search
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sidebar(),
    nav: [
      { text: "Tutorial", link: "/tutorial" },
      { text: "Promises", link: "/promises" },
      ...(versions.length ? [{ text: version, items: versions.map((v, i) => ({ text: i ? v : v + " (latest)", link: `${site}${v}/`, target: "_self" })) }] : []),
    ],
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path`, text: "Edit this page" },
  },
}
