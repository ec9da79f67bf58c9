#if Cloud
import ArgumentParser
import KeepsakeReplication
import Foundation
import KeepsakeInterchange
import KeepsakeStore
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// `keepsake convert`: writes a file in another format.
struct ConvertCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "convert",
    abstract: "Convert an archive, property list, keyed archive or JSON to another of these formats.",
    discussion: """
      The input's format is recognized by its first bytes. The output's format follows from its name (.keepsake, \
      .json, .plist or .xml, .bplist, or .archive for a keyed archive as NSKeyedArchiver writes it) or from --to. Use \
      - for standard input or output. Archives and keyed archives become JSON in a form that keeps everything and can \
      be edited and converted back. With --lossy they become plain JSON as other programs write it, and a report \
      counts what was not preserved. Without --lossy nothing is dropped: a value that the output format doesn't have \
      is an error that gives its path.
      """)

  @Argument(help: "The file to convert, or - for standard input.", completion: .file())
  var input: String

  @Argument(help: "The file to write, or - for standard output.", completion: .file())
  var output: String

  @Option(help: "The format to write, regardless of the output's name; xml and binary are property lists.")
  var to: FileFormat?

  @Flag(help: "Write values that JSON or property lists don't have in a form that can be converted back.")
  var tagged = false

  @Flag(help: "Write values that the format doesn't have as text, or leave them out, and report which these were.")
  var lossy = false

  @OptionGroup var seal: SealOptions

  @Flag(name: .long, help: "Replace the file if there is one.")
  var force = false

  @Flag(name: .long, help: "Print JSON.")
  var json = false

  func validate() throws {
    guard !(tagged && lossy) else { throw ValidationError("--tagged and --lossy can't be used together.") }
    guard format != nil else {
      throw ValidationError("The format can't be told from the name \(output): name it with --to.")
    }
    guard !(json && output == InputKind.standard) else {
      throw ValidationError("With --json, name an output file instead of -.")
    }
  }

  private var format: FileFormat? { to ?? (output == InputKind.standard ? nil : FileFormat(path: output)) }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(quiet: json)
      let answer = try convert { progress.update($0) }
      progress.clear()
      if json {
        try Output.document(answer)
      } else {
        // If the file itself goes to standard output, only the losses are reported.
        if output != InputKind.standard { Output.text(answer.line) }
        for line in answer.lossLines {
          if output == InputKind.standard { Output.complaint(line) } else { Output.text("  " + line) }
        }
      }
    }
  }

  func convert(_ progress: (String) -> Void = { _ in }) throws -> Answer {
    guard let format else { throw CommandFailure(.data, "no output format was given", next: "name one with --to") }
    try refuseExisting()
    progress("reading \(Printable.text(input))")
    let file = try InspectCommand.naming(input) {
      try SavedFile(SavedFile.opened(at: input, seal: seal.request()))
    }
    let form: Conversion.Form? = tagged ? .tagged : lossy ? .lossy : nil
    let conversion = try InspectCommand.naming(input) {
      try Conversion(of: file, to: format, form: form, progress: progress)
    }
    progress("writing \(Printable.size(Int64(conversion.bytes.count)))")
    try write(conversion.bytes, format)
    return Answer(
      input: input, output: output, wrappings: file.wrappings.isEmpty ? nil : file.wrappings, from: file.words,
      to: format.rawValue, form: conversion.form,
      inputBytes: file.byteCount,
      outputBytes: conversion.bytes.count, losses: conversion.losses)
  }

  // MARK: Writing

  private func refuseExisting() throws {
    var status = stat()
    // A dangling link counts as existing, too.
    guard output != InputKind.standard, !force, lstat(output, &status) == 0 else { return }
    throw CommandFailure.exists(output)
  }

  private func write(_ bytes: Data, _ format: FileFormat) throws {
    guard output != InputKind.standard else { return try writeToStandardOutput(bytes, format) }
    if force, let (url, access) = try replaced() { return try AtomicFile.write(bytes, to: url, access: access) }
    guard try AtomicFile.create(bytes, at: URL(fileURLWithPath: output)) else { throw CommandFailure.exists(output) }
  }

  /// Returns the regular file at the output, or the one that a link there leads to, and its permissions; nil if there
  /// is none.
  private func replaced() throws -> (URL, AtomicFile.Access)? {
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
    do {
      try FileHandle.standardOutput.write(contentsOf: bytes)
    } catch {
      throw CommandFailure(
        .io, "standard output can't be written: \(ErrorReason.text(error))", next: "name a file instead of -")
    }
  }

  struct Answer: Encodable {
    var input: String
    var output: String
    /// What the input was opened from, outermost first; nil for a file as it is.
    var wrappings: [Wrapping]?
    /// The format of the input, in a few words.
    var from: String
    var to: String
    var form: Conversion.Form
    var inputBytes: Int
    var outputBytes: Int
    /// What the conversion gave up.
    var losses: [PlainForm.Loss]

    var line: String {
      let end = form == .tagged ? ", in a form that can be converted back" : ""
      let (before, after) = (Printable.size(Int64(inputBytes)), Printable.size(Int64(outputBytes)))
      let opening = (wrappings ?? []).opening
      return "\(Printable.text(input)) (\(opening)\(from), \(before)) to \(to), \(after)\(end)"
    }

    var lossLines: [String] {
      losses.map { "not preserved: \($0.count) \($0.what); first at \(Printable.text($0.path))" }
    }
  }
}
#endif
