// Lints the sources beside it. It is a package of its own, because typescript-eslint needs an older TypeScript.
import tseslint from "typescript-eslint"

export default tseslint.config(
  { ignores: ["src/models.ts"] }, // generated
  ...tseslint.configs.recommendedTypeChecked,
  { languageOptions: { parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname } } },
)
