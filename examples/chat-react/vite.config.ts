import { defineConfig } from "vite"

// The page is served by examples/chat below /react/. `npm run dev` serves it itself, and sends what is for the chat there.
export default defineConfig({
  base: "/react/",
  resolve: {
    alias: {
      "@flowfabric/chat-transport": new URL("../../clients/chat-transport/src/index.ts", import.meta.url).pathname,
    },
  },
  build: { rolldownOptions: { input: ["index.html", "minimal.html"] } },
  server: { proxy: Object.fromEntries(["/api", "/published", "/chat"].map(path => [path, "http://127.0.0.1:7790"])) },
})
