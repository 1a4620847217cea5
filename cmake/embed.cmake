# embed.cmake: "-DIN=file;file..." -DOUT=file.c -DPREFIX=prefix makes a C file with the bytes of the files, a zero behind
# each, and their numbers: timeline-act.js becomes const char PREFIXtimeline_act_js[], const size_t PREFIXtimeline_act_js_size.
file(WRITE ${OUT} "#include <stddef.h>\n")
foreach(file ${IN})
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  set(name ${PREFIX}${name})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REPEAT "0x..," 20 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  file(APPEND ${OUT} "extern const char ${name}[];\nextern const size_t ${name}_size;\n"
    "const char ${name}[] = {\n${bytes}0};\nconst size_t ${name}_size = sizeof ${name} - 1;\n")
endforeach()
