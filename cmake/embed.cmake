# embed.cmake: -DIN=file -DOUT=file.c -DNAME=name makes a C file with the bytes of a file, a zero behind them, and their
# number: const char NAME[], const size_t NAME_size.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REPEAT "0x..," 20 line)
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <stddef.h>\nextern const char ${NAME}[];\nextern const size_t ${NAME}_size;\n"
  "const char ${NAME}[] = {\n${bytes}0};\nconst size_t ${NAME}_size = sizeof ${NAME} - 1;\n")
