// Compiles the files that are named, and packs what comes out into program.jar: in one process, where the compiler's own commands take two.
import java.io.*;
import java.net.URI;
import java.util.*;
import java.util.zip.*;
import javax.tools.*;

public class WhetstoneBuild {
  static final Map<String, ByteArrayOutputStream> classes = new TreeMap<>();

  static final class Made extends SimpleJavaFileObject {
    final String name;

    Made(String name) {
      super(URI.create("made:///" + name), Kind.CLASS);
      this.name = name;
    }

    @Override
    public OutputStream openOutputStream() {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      classes.put(name, bytes);
      return bytes;
    }
  }

  public static void main(String[] files) throws IOException {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StandardJavaFileManager standard = compiler.getStandardFileManager(null, null, null);
    JavaFileManager manager = new ForwardingJavaFileManager<JavaFileManager>(standard) {
      @Override
      public JavaFileObject getJavaFileForOutput(Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
        return new Made(name.replace('.', '/') + ".class");
      }
    };
    List<String> options = List.of("-nowarn", "-proc:none");
    if (!compiler.getTask(null, manager, null, options, null, standard.getJavaFileObjects(files)).call()) System.exit(1);
    try (ZipOutputStream jar = new ZipOutputStream(new BufferedOutputStream(new FileOutputStream("program.jar")))) {
      jar.setLevel(Deflater.NO_COMPRESSION);
      for (Map.Entry<String, ByteArrayOutputStream> one : classes.entrySet()) {
        jar.putNextEntry(new ZipEntry(one.getKey()));
        one.getValue().writeTo(jar);
      }
    }
  }
}
