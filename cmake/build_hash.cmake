# build_hash.cmake: "-DIN=file;file..." -DOUT=file.c -DNAME=name makes a C file with a hash of the files as text, in
# name[].
set(all)
foreach(file ${IN})
  file(SHA256 ${file} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 all "${all}")
file(WRITE ${OUT} "extern const char ${NAME}[];\nconst char ${NAME}[] = \"${all}\";\n")
