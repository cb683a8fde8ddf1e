-- envbuild 0.1.0 for taurus-ml
help(table.concat({
  "envbuild/0.1.0: build and prove deep-learning environments",
  "Site: taurus-ml (the default of --site).",
  "",
  "  envbuild recipes list",
  "  envbuild plan RECIPE",
  "  envbuild create RECIPE --root DIR",
  "",
  "This module adds the module trees of the published environments to MODULEPATH:",
  "  /projects/envbuild/taurus-ml/ppc64le/modulefiles",
}, "\n"))
whatis("Name: envbuild")
whatis("Version: 0.1.0")
whatis("Category: deep learning environment")

if mode() == "load" and not isFile("/projects/envbuild/taurus-ml/envbuild/0.1.0/bin/envbuild") then
  LmodError("envbuild: not installed in /projects/envbuild/taurus-ml/envbuild/0.1.0; see docs/rendering.md")
end
pushenv("ENVBUILD_SITE", "taurus-ml")
prepend_path("MODULEPATH", "/projects/envbuild/taurus-ml/ppc64le/modulefiles")
prepend_path("PATH", "/projects/envbuild/taurus-ml/envbuild/0.1.0/bin")
