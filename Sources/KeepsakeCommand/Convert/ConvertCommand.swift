#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInterchange
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
/// `keepsake convert`: writes a file in another format.
struct ConvertCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "convert",
    abstract: "Convert an archive, property list, keyed archive or JSON to another of these formats.",
    usage: "keepsake convert [OPTIONS] INPUT OUTPUT\n       keepsake convert [OPTIONS] --to FORMAT INPUT ... FOLDER",
    discussion: """
      The input's format is recognized by its first bytes. The output's format follows from its name (.keepsake, \
      .json, .plist or .xml, .bplist, or .archive for a keyed archive as NSKeyedArchiver writes it) or from --to. Use \
      - for standard input or output. Archives and keyed archives become JSON in a form that keeps everything and can \
      be edited and converted back. With --lossy they become plain JSON as other programs write it, and a report \
      counts what was not preserved. Without --lossy nothing is dropped: a value that the output format doesn't have \
      is an error that gives its path, and so are classes of a keyed archive that an archive doesn't keep. Several \
      files are converted into a folder, each under its own name, and one that can't be converted doesn't stop the \
      others.
      """,
    examples: [
      "keepsake convert save.keepsake save.json",
      "keepsake convert hero.archive hero.json --lossy",
      "keepsake convert --to json *.archive converted/",
    ])

  @Argument(
    help: ArgumentHelp(
      """
      The file to convert, or - for standard input; then the file to write, or - for standard output. Or the files to \
      convert, and then the folder to write them to.
      """, valueName: "file"),
    completion: .file())
  var files: [String]

  @Option(
    name: .shortAndLong,
    help: "The format to write, regardless of the output's name; xml and binary are property lists.")
  var to: FileFormat?

  @Flag(help: "Write values that JSON or property lists don't have in a form that can be converted back.")
  var tagged = false

  @Flag(help: "Write values that the format doesn't have as text, or leave them out, and report which these were.")
  var lossy = false

  @OptionGroup var seal: SealOptions

  @Flag(name: .shortAndLong, help: "Replace the file if there is one.")
  var force = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func validate() throws {
    guard !(tagged && lossy) else { throw ValidationError("--tagged and --lossy can't be used together.") }
    guard files.count > 1 else { throw ValidationError("Name the file to convert, and then the file to write.") }
    guard format != nil else {
      throw ValidationError(
        isIntoFolder
          ? "Name the format of the files in \(output) with --to."
          : "The format can't be told from the name \(output): name it with --to.")
    }
    guard !isIntoFolder || !inputs.contains(InputKind.standard) else {
      throw ValidationError("Standard input has no name in a folder: name the file to write.")
    }
    guard !(json && output == InputKind.standard) else {
      throw ValidationError("With --json, name an output file instead of -.")
    }
  }

  private var inputs: ArraySlice<String> { files.dropLast() }
  private var output: String { files.last ?? InputKind.standard }

  private var isIntoFolder: Bool {
    var isFolder: ObjCBool = false
    return inputs.count > 1 || output.hasSuffix("/")
      || FileManager.default.fileExists(atPath: output, isDirectory: &isFolder) && isFolder.boolValue
  }

  private var format: FileFormat? {
    to ?? (output == InputKind.standard || isIntoFolder ? nil : FileFormat(path: output))
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(json: json)
      guard isIntoFolder, let format else {
        let answer = try convert { progress.update($0) }
        progress.clear()
        return try json ? Output.document(answer) : report(answer)
      }
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: output, isDirectory: &isFolder), isFolder.boolValue else {
        throw CommandFailure(.noInput, "there is no folder \(output)", next: "create it, or name another one")
      }
      var batch = FileBatch(json: json)
      var written: Set<String> = []
      for input in inputs {
        batch.add(input) {
          defer { progress.clear() }
          let target = Self.target(of: input, in: output, as: format)
          guard written.insert(target).inserted else {
            throw CommandFailure(
              .exists, "\(input) has the same name in \(output) as another of the files", next: "convert it by itself")
          }
          let answer = try convert(input, to: target, as: format) { progress.update($0) }
          guard !json else { return try Output.data(answer) }
          report(answer)
          return Data()
        }
      }
      try batch.end()
    }
  }

  private func report(_ answer: Answer) {
    // If the file itself goes to standard output, only the losses are reported.
    let isStandard = answer.output == InputKind.standard
    if !isStandard { Output.text(answer.line) }
    for line in answer.lossLines { isStandard ? Output.complaint(line) : Output.text("  " + line) }
  }

  /// Returns the path of a converted file in a folder: the name of the original, with the ending of the format.
  private static func target(of input: String, in folder: String, as format: FileFormat) -> String {
    let name = URL(fileURLWithPath: input).lastPathComponent
    let stem =
      FileFormat(path: name) == nil ? name : URL(fileURLWithPath: name).deletingPathExtension().lastPathComponent
    return folder + (folder.hasSuffix("/") ? "" : "/") + stem + "." + format.fileExtension
  }

  /// Converts the only input.
  func convert(_ progress: (String) -> Void = { _ in }) throws -> Answer {
    guard let format else { throw CommandFailure(.usage, "no output format was given", next: "name one with --to") }
    return try convert(files[0], to: output, as: format, progress)
  }

  private func convert(
    _ input: String, to output: String, as format: FileFormat, _ progress: (String) -> Void
  ) throws -> Answer {
    if output != InputKind.standard { try OutputFile.check(output, mayReplace: force) }
    progress("reading \(Printable.text(input))")
    let opened = try InspectCommand.naming(input) { try SavedFile.opened(at: input, seal: seal.request()) }
    let file = try InspectCommand.naming(input) { try SavedFile(opened) }
    let form: Conversion.Form? = tagged ? .tagged : lossy ? .lossy : nil
    let conversion = try InspectCommand.naming(input) {
      try Conversion(of: file, to: format, form: form, progress: progress)
    }
    progress("writing \(Printable.size(Int64(conversion.bytes.count)))")
    try write(conversion.bytes, format, to: output)
    return Answer(
      path: input, output: output, wrappings: file.wrappings.isEmpty ? nil : file.wrappings, from: file.words,
      to: format.rawValue, form: conversion.form,
      bytes: file.byteCount,
      outputBytes: conversion.bytes.count,
      losses: try roundingLosses(of: opened, read: file) + conversion.losses)
  }

  /// Returns what reading JSON gave up already.
  private func roundingLosses(of opened: OpenedFile, read file: SavedFile) throws -> [PlainForm.Loss] {
    guard file.spelling == .json else { return [] }
    let rounding = try JSONReader.rounding(in: opened.bytes, isJSON5: SavedFile.isJSON5(opened.name))
    guard rounding.count > 0 else { return [] }
    return [
      PlainForm.Loss(
        what: "\(rounding.count == 1 ? "number" : "numbers") with more digits than a 64-bit number holds (rounded)",
        count: rounding.count, path: rounding.first)
    ]
  }

  // MARK: Writing

  private func write(_ bytes: Data, _ format: FileFormat, to output: String) throws {
    guard output != InputKind.standard else { return try writeToStandardOutput(bytes, format) }
    if force, let (url, access) = try replaced(output) { return try AtomicFile.write(bytes, to: url, access: access) }
    guard try AtomicFile.create(bytes, at: URL(fileURLWithPath: output)) else { throw CommandFailure.exists(output) }
  }

  /// Returns the regular file at the output, or the one that a link there leads to, and its permissions; nil if there
  /// is none.
  private func replaced(_ output: String) throws -> (URL, AtomicFile.Access)? {
    var status = stat()
    guard stat(output, &status) == 0 else {
      guard lstat(output, &status) != 0 else {
        throw CommandFailure(
          .data, "\(output) is a symbolic link to a file that doesn't exist", next: "name another file")
      }
      return nil
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw CommandFailure(
        .data, "\(output) is not a regular file and can't be replaced",
        next: "name another file, or - for standard output")
    }
    return (
      URL(fileURLWithPath: output).resolvingSymlinksInPath(), .permissions(UInt16(truncatingIfNeeded: status.st_mode))
    )
  }

  private func writeToStandardOutput(_ bytes: Data, _ format: FileFormat) throws {
    guard format == .json || format == .xml || isatty(STDOUT_FILENO) == 0 else {
      throw CommandFailure(
        .data, "\(format.words) data can't be shown in a terminal",
        next: "name a file, or send the output through a pipe")
    }
    Output.bytes(bytes)
  }

  struct Answer: Encodable {
    var path: String
    var output: String
    /// What the input was opened from, outermost first; nil for a file as it is.
    var wrappings: [Wrapping]?
    /// The format of the input, in a few words.
    var from: String
    var to: String
    var form: Conversion.Form
    var bytes: Int
    var outputBytes: Int
    /// What the conversion gave up.
    var losses: [PlainForm.Loss]

    var line: String {
      let end = form == .tagged ? ", in a form that can be converted back" : ""
      let (before, after) = (Printable.size(Int64(bytes)), Printable.size(Int64(outputBytes)))
      let opening = (wrappings ?? []).opening
      return "\(Printable.text(path)) (\(opening)\(from), \(before)) to \(to), \(after)\(end)"
    }

    var lossLines: [String] {
      losses.map { "not preserved: \($0.counted); first at \(Printable.text($0.path))" }
    }
  }
}
#endif
